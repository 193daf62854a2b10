"""A scripted model writes a wrong kernel, hears the judge, mends it, and is right, on this host."""

from __future__ import annotations

import functools
import gzip
import io
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

RIGHT = """import torch
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""
WRONG = RIGHT.replace("    dist.all_reduce(total)\n", "")
# Prints inputs where a traceback shows them.
TELLING = RIGHT.replace(
    "    total =", "    raise RuntimeError(tensor.flatten()[:9].tolist())\n    total ="
)
# In the order in which they are written, each once the one before is judged.
KERNELS = (TELLING, TELLING + "# again\n", WRONG, RIGHT)
VERDICTS = ["runtime_error", "runtime_error", "output_mismatch", "ok"]


def _model(body: Body) -> Answer:
    """Writes the next kernel as long as the last word of the judge is not `ok`."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if results and "verdict: ok" in results[-1]:
        return said("", calls=(("profile", "{}"), ("done", "{}")))
    written = sum(text.startswith("step") for text in results)
    source = json.dumps({"source": KERNELS[written]})
    return said("", calls=(("write", source), ("judge", "{}")))


@pytest.mark.slow
def test_it_mends_its_kernel_and_nothing_of_hidden_inputs_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (str(Path(__file__).parents[1] / "tuned_judge.py"), "hurried")
    hurried = functools.partial(PreforkServer, program=program)
    monkeypatch.setattr(judging, "PreforkServer", hurried)
    reports = _watched(monkeypatch)
    folder = tmp_path / "out"
    words = ("--harness", "agentic", "--problems", "1", "--judge", "local", "--model", "m")
    with serving(_model) as server:
        assert main(["run", str(folder), *words, "--base-url", server.url]) == 0
    assert [str(report.verdict) for report in reports] == VERDICTS
    assert main(["pack", str(folder)]) == 0
    assert main(["replay", str(folder)]) == 0
    with tarfile.open(tmp_path / "out.tar.gz") as tar:
        rows = [json.loads(line) for line in _read(tar, "attempts.jsonl").splitlines()]
        transcript = gzip.decompress(_read(tar, "transcripts/1/1.jsonl.gz")).decode()
        last = _read(tar, "kernels/1_allreduce/attempt_1/step_04_pytorch.py")
    assert [row["ended"] for row in rows] == [None, None, None, "done"]
    assert rows[-1]["judge_runs"] == 4
    assert last.decode() == RIGHT
    for heard in (
        "verdict: output_mismatch",
        "tolerances off",
        "verdict: ok",
        "95 % interval",
        "rank 1",
    ):
        assert heard in transcript
    first, second = (_values(report) for report in reports[:2])
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


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert isinstance(file, io.BufferedReader)
    return file.read()
