"""A scripted model writes kernels that tell their inputs; of these it hears nothing.

How it mends a wrong kernel and comes to a row of the board: tests/leaderboard/test_ten_lines.py.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
import tarfile
from pathlib import Path

import pytest

from evaluator.evaluate import evaluate as really_evaluate
from evaluator.generate import judging
from evaluator.generate.__main__ import main
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.job import Job
from evaluator.messages.report import Report
from tests.evaluator.generate.server import Answer, Body, said, serving

# Prints inputs where a traceback shows them.
TELLING = """def solution(tensor):
    raise RuntimeError(tensor.flatten()[:9].tolist())
"""
KERNELS = (TELLING, TELLING + "# again\n")


def _model(body: Body) -> Answer:
    """Writes the next kernel, once the one before is judged."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    written = sum(text.startswith("step") for text in results)
    if written == len(KERNELS):
        return said("", calls=(("done", "{}"),))
    source = json.dumps({"source": KERNELS[written]})
    return said("", calls=(("write", source), ("judge", "{}")))


def test_nothing_of_hidden_inputs_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (str(Path(__file__).parents[1] / "tuned_judge.py"), "hurried")
    hurried = functools.partial(PreforkServer, program=program)
    monkeypatch.setattr(judging, "PreforkServer", hurried)
    reports = _watched(monkeypatch)
    folder = tmp_path / "out"
    words = ("--harness", "agentic", "--problems", "1", "--judge", "local", "--model", "m")
    with serving(_model) as server:
        assert main(["run", str(folder), *words, "--base-url", server.url]) == 0
    assert [str(report.verdict) for report in reports] == ["runtime_error"] * 2
    assert main(["pack", str(folder)]) == 0
    with tarfile.open(tmp_path / "out.tar.gz") as tar:
        file = tar.extractfile("transcripts/1/1.jsonl.gz")
        assert file is not None
        transcript = gzip.decompress(file.read()).decode()
    assert "verdict: runtime_error" in transcript
    first, second = (_values(report) for report in reports)
    assert min(len(first), len(second)) >= 3
    assert not first & second  # each run draws its own secret
    events = next((folder / "attempts").rglob("*.jsonl")).read_text()
    assert not [value for value in first | second if value in transcript + events]


def _watched(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """The reports of the judge, as they come."""
    reports: list[Report] = []

    def evaluate(job: Job, *rest: object) -> Report:
        reports.append(really_evaluate(job, *rest))  # type: ignore[arg-type]
        return reports[-1]

    monkeypatch.setattr(judging, "evaluate", evaluate)
    return reports


def _values(report: Report) -> set[str]:
    """The numbers of an input that the kernel printed, as the judge's own report has them."""
    text = f"{report.evidence} {report.message}"
    return set(re.findall(r"\d+\.\d{3,}", text))
