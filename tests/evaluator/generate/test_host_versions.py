"""Models are told what judges them: this host, the site's hosts, or those of the release."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from evaluator.generate.host_versions import versions_of
from evaluator.sandbox import hardware
from problems.environment import of_release
from tests.evaluator.client.scripted import Answer, refusal, site
from tests.evaluator.generate.scripted import plan

GPU = ("--hardware", "h200x4", "--world-size", "4", "--dtype", "bfloat16", "--size", "standard")


def test_a_judge_here_tells_this_hosts_versions() -> None:
    assert versions_of(plan("--problems", "1", "--judge", "local"))["python"] == (
        platform.python_version()
    )
    assert versions_of(plan("--problems", "1", "--judge", "none")) == of_release("cpu")
    assert versions_of(plan("--problems", "1", "--judge", "none", *GPU)) == of_release(
        "cuda", "4 x NVIDIA H200"
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            Answer(value={"environments": [{"hardware": "h200x4", "versions": {"a": 1}}]}),
            {"a": "1"},
        ),
        (Answer(value={"environments": [{"hardware": "h100x4", "versions": {"a": 1}}]}), None),
        (Answer(value=[1]), None),
        (Answer(value={"environments": [{"hardware": "h200x4", "versions": 7}]}), None),
        (refusal(404), None),
    ],
)
def test_a_site_tells_those_of_its_hosts(answer: Answer, expected: dict[str, str] | None) -> None:
    with site(answer) as asked:
        own = plan("--problems", "1", "--judge", "site", "--site", asked.url, *GPU)
        assert versions_of(own) == (expected or of_release("cuda", "4 x NVIDIA H200"))
    assert [path for _, path, _ in asked.requests] == ["/environment.json"]


def test_a_compiler_says_its_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "nvcc"
    program.parent.mkdir()
    monkeypatch.setattr(hardware, "search_path", lambda: str(program.parent))
    assert hardware._nvcc() is None
    for said, release in (("Cuda compilation tools, release 13.0, V13.0.88", "13.0"), ("?", None)):
        program.write_text(f"#!/bin/sh\necho '{said}'\n")
        program.chmod(0o755)
        assert hardware._nvcc() == release
