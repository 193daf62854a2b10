"""The commands from end to end: the real client, a scripted server, no judge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.generate.__main__ import main
from evaluator.generate.journal import read_events
from evaluator.generate.options import parser, plan_of
from evaluator.generate.plan import RunFiles, attempts, load_plan
from tests.evaluator.generate.scripted import FENCED
from tests.evaluator.generate.server import Answer, Body, Served, failing, said, serving

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk-a-key-that-nobody-may-see-0123456789"
FEW = ("--judge", "none", "--problems", "1,2,3,13", "--parallel", "2")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)


def _run(folder: Path, server: Served, *words: str) -> int:
    own = ("--model", "m", "--base-url", server.url, "--api-key-env", "MY_KEY")
    return main(["run", str(folder), *own, *words])


def test_run_status_pack_and_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    with serving(lambda body: said(FENCED)) as server:
        assert _run(folder, server, *FEW) == 0
    assert len(server.asked) == 4
    assert main(["status", str(folder)]) == 0
    assert "13_gemm_allreduce 1: answered" in capsys.readouterr().out
    assert main(["replay", str(folder)]) == 2  # nothing to compare with yet
    assert main(["pack", str(folder)]) == 0
    assert main(["replay", str(folder)]) == 0
    (tmp_path / "out.tar.gz").write_bytes(b"another")
    assert main(["replay", str(folder)]) == 1


def test_a_run_is_not_begun_twice_and_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with serving(lambda body: said(FENCED)) as server:
        assert _run(tmp_path / "out", server, *FEW) == 0
        assert _run(tmp_path / "out", server, *FEW) == 2
    for command in ("resume", "status", "pack", "replay"):
        assert main([command, str(tmp_path / "nothing")]) == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--problems", "900"),
        ("--problems", "category:nothing"),
        ("--problems", "1,1000"),
        ("--world-size", "3"),
        ("--size", "huge"),
        ("--hardware", "h900x4"),
        ("--hardware", "h200x2", "--world-size", "4"),
        ("--backend", "cuda", "--judge", "local"),
        ("--backend", "parallelkittens", "--harness", "one-shot"),
        ("--budget-usd", "5"),
        ("--harness", "zero-shot", "--samples", "2"),
        ("--harness", "one-shot", "--examples", "0"),
        ("--base-url", "http://user:password@127.0.0.1/v1"),
        ("--parallel", "0"),
        ("--header", "X-Team=NO_SUCH_VARIABLE"),
    ],
)
def test_what_does_not_fit_together_is_said_before_anything_is_asked(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda body: said(FENCED)) as server:
        assert _run(tmp_path / "out", server, "--judge", "none", "--problems", "1", *words) == 2
    assert not server.asked
    assert not (tmp_path / "out").exists()
    assert len(capsys.readouterr().err) < 1200


def test_only_asking_needs_the_client_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    with serving(lambda body: said(FENCED)) as server:
        assert _run(folder, server, *FEW) == 0
        monkeypatch.setitem(sys.modules, "openai", None)
        monkeypatch.delitem(sys.modules, "evaluator.generate.endpoint", raising=False)
        for command in ("status", "pack", "replay"):
            assert main([command, str(folder)]) == 0
        assert _run(tmp_path / "never", server, *FEW, "--print-prompt") == 0
        assert _run(tmp_path / "other", server, *FEW) == 2
    assert "requirements/generate.txt" in capsys.readouterr().err


def test_print_prompt_shows_exactly_what_a_model_gets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--harness", "agentic", "--problems", "13", "--judge", "none", "--steps", "1")
    with serving(
        lambda body: said("", calls=(("write", '{"source": "x"}'), ("done", "{}")))
    ) as server:
        assert _run(tmp_path / "never", server, *words, "--print-prompt") == 0
        assert not server.asked
        shown = capsys.readouterr().out
        assert _run(tmp_path / "out", server, *words) == 0
    (body,) = server.asked
    for message in body["messages"]:
        assert message["content"] in shown
    shown_tools = json.loads(shown.partition("# tools\n\n")[2])
    sent = [tool["function"] for tool in body["tools"]]
    assert [tool["parameters"] for tool in shown_tools] == [tool["parameters"] for tool in sent]
    assert not (tmp_path / "never").exists()


def _leaking(body: Body) -> Answer:
    """A server that says the key back to us wherever it can."""
    if len(body["messages"]) > 40:
        return failing(400, f"context_length {KEY}")
    call = ("write", json.dumps({"source": f"# {KEY} {len(body['messages'])}\n"}))
    return said(f"your key is {KEY}", calls=(call,), refusal=None)


def test_the_key_is_in_no_file_and_in_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    with serving(_leaking) as server:
        _run(
            folder,
            server,
            "--harness",
            "agentic",
            "--judge",
            "none",
            "--problems",
            "1",
            "--steps",
            "2",
        )
    assert server.keys[0] == f"Bearer {KEY}"
    assert main(["pack", str(folder)]) == 0
    with serving([failing(401, f"Incorrect API key provided: {KEY}")]) as server:
        assert _run(tmp_path / "other", server, *FEW, "--parallel", "1") == 2
    seen = capsys.readouterr()
    assert KEY not in seen.out + seen.err
    assert "401" in seen.err
    unpacked = subprocess.run(
        ["tar", "-xzOf", str(tmp_path / "out.tar.gz")], capture_output=True, check=True
    ).stdout
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [data for data in [unpacked, *files] if KEY.encode() in data]


def test_what_waits_makes_the_exit_status_and_resume_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    with serving(lambda body: said(FENCED, usage=(9000, 500))) as server:
        limit = ("--budget-tokens", "2e4", "--max-output-tokens", "1000", "--parallel", "1")
        assert _run(folder, server, *FEW, *limit) == 1
    assert 0 < len(server.asked) < 4
    assert "wait" in capsys.readouterr().out
    with serving(lambda body: said(FENCED)) as again:
        words = ["--base-url", again.url, "--budget-tokens", "1e6"]
        assert main(["resume", str(folder), *words]) == 0
    assert len(server.asked) + len(again.asked) == 4


def _slowly(body: Body) -> Answer:
    return Answer(document=said(FENCED).document, delay_s=0.15)


def test_after_kill_9_nothing_that_was_answered_is_asked_again(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = ["--model", "m", "--judge", "none", "--problems", "1,2,3,4,5,6,7,8", "--parallel", "2"]
    with serving(_slowly) as server:
        command = [sys.executable, "-m", "evaluator.generate", "run", str(folder)]
        process = subprocess.Popen([*command, *words, "--base-url", server.url], cwd=ROOT)
        deadline = time.monotonic() + 60
        while len(server.asked) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        answered = sum(event["kind"] == "replied" for event in _events(folder))
        before = len(server.asked)
        assert 0 < answered < 8
        assert main(["resume", str(folder), "--base-url", server.url]) == 0
    assert len(server.asked) - before == 8 - answered
    assert sum(event["kind"] == "replied" for event in _events(folder)) == 8


def _events(folder: Path) -> Iterator[Body]:
    place = RunFiles(folder=folder)
    for which in attempts(load_plan(place)):
        yield from read_events(place.events(*which))


def test_hostile_text_does_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "\x1b[2J<script>\u202e"
    with serving(lambda body: failing(500, hostile)) as server:
        words = ("--judge", "none", "--problems", "1", "--budget-hours", "0.001")
        assert _run(tmp_path / "out", server, *words) == 1
    main(["status", str(tmp_path / "out")])
    seen = capsys.readouterr()
    assert "\x1b" not in seen.out + seen.err
    assert "\u202e" not in seen.out + seen.err


@pytest.mark.parametrize(
    ("hardware", "wanted"),
    [
        ("cpu", (2, "tiny", "float32")),
        ("h200x4", (4, "standard", "bfloat16")),
        ("6 x NVIDIA B200", (4, "standard", "bfloat16")),
    ],
)
def test_a_run_is_for_what_counts_on_its_hardware(
    hardware: str, wanted: tuple[int, str, str]
) -> None:
    told = ["run", "folder", "--model", "m", "--judge", "none", "--hardware", hardware]
    plan = plan_of(parser().parse_args(told))
    assert (plan.world_size, plan.size, plan.dtype) == wanted
