"""What `benchmarks/judge_kernels.py` judges, keeps and leaves out."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evaluator.messages.job import Backend, Placement, Profile
from evaluator.messages.report import Phase, Progress, Report, Verdict
from tests.benchmark_scripts import script
from tests.evaluator.test_messages import REPORT

SOURCE = "def solution(x): return x\n"


@pytest.fixture
def judge_kernels() -> ModuleType:
    return script("judge_kernels")


@pytest.fixture
def call(judge_kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Calls the benchmark; returns its exit status and the names that were judged."""

    def called(*arguments: str, found: Report = REPORT) -> tuple[int, list[str]]:
        names: list[str] = []

        def judged(turn: Any, *_: object) -> tuple[Report, list[float]]:
            names.append(turn.name)
            return found, [1.5, 0.25, 0.125, 0.5]

        out = str(tmp_path / "out.jsonl")
        monkeypatch.setattr(judge_kernels, "judged", judged)
        monkeypatch.setattr("sys.argv", ["judge_kernels.py", out, "--parallel", "1", *arguments])
        return judge_kernels.main(), names

    return called


def test_kernels_are_named_by_files_and_lists(
    judge_kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    published, own, listed = (tmp_path / n for n in ("1_allreduce_cuda.py", "mine.py", "list"))
    for path in (published, own):
        path.write_text(SOURCE)
    listed.write_text(f"gather={own}\n")
    asked = ["judge_kernels.py", "out", str(published), "--list", str(listed)]
    monkeypatch.setattr("sys.argv", [*asked, "--profiles", "hardened,upstream"])
    turns = list(judge_kernels.turns(judge_kernels._arguments()))
    jobs = [(turn.job.problem, turn.job.backend, turn.job.profile) for turn in turns]
    assert jobs == [
        ("allreduce", Backend.CUDA, Profile.HARDENED),
        ("allreduce", Backend.CUDA, Profile.UPSTREAM),
        ("gather", Backend.PYTORCH, Profile.HARDENED),
        ("gather", Backend.PYTORCH, Profile.UPSTREAM),
    ]
    assert {turn.job.placement for turn in turns} == {Placement.SHARED}
    assert len({turn.key for turn in turns}) == 4


@pytest.mark.parametrize(
    "found",
    [
        replace(REPORT, verdict=Verdict.TIMEOUT, timing=None),
        replace(REPORT, verdict=Verdict.RESOURCE_LIMIT, cause="beside", timing=None),
    ],
    ids=lambda report: report.verdict,
)
def test_what_others_beside_it_can_have_caused_is_judged_again_alone(
    call: Any, tmp_path: Path, found: Report
) -> None:
    kernel = tmp_path / "mine.py"
    kernel.write_text(SOURCE)
    asked = (f"allreduce={kernel}", "--parallel", "3")
    assert call(*asked, found=found) == (0, [f"{tmp_path.name}/mine"] * 2)
    assert call(*asked, found=found) == (0, [])
    kept = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["beside"] for line in kept] == [2, 0]


def test_what_is_done_is_not_judged_again_unless_it_changed(call: Any, tmp_path: Path) -> None:
    kernel = tmp_path / "mine.py"
    kernel.write_text(SOURCE)
    asked = f"allreduce={kernel}"
    assert call(asked) == (0, [f"{tmp_path.name}/mine"])
    assert call(asked) == (0, [])
    kernel.write_text(SOURCE + "\n")
    assert call(asked)[1]
    assert call(asked, "--world-size", "2")[1]
    kept = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["world_size"] for line in kept] == [4, 4, 2]


def test_a_line_holds_what_is_compared(
    judge_kernels: ModuleType, call: Any, tmp_path: Path
) -> None:
    kernel, reports = tmp_path / "mine.py", tmp_path / "reports.jsonl"
    kernel.write_text(SOURCE)
    raced = replace(
        REPORT,
        verdict=Verdict.OUTPUT_MISMATCH,
        cause="race_between_calls",
        timing=None,
        phase_s={Phase.BUILD: 3.0, Phase.VERIFY: 2.0, Phase.TEARDOWN: 0.5},
    )
    call(f"allreduce={kernel}", "--reports", str(reports), found=raced)
    (line,) = judge_kernels.read_lines(tmp_path / "out.jsonl")
    assert (line["verdict"], line["cause"]) == ("output_mismatch", "race_between_calls")
    assert (line["build_s"], line["compile_s"], line["rest_s"]) == (3.0, 1.25, 1.25)
    assert json.loads(reports.read_text())["report"]["cause"] == "race_between_calls"
    assert judge_kernels.summary([line]).startswith("   1 output_mismatch/race_between_calls")


def test_a_trial_takes_from_what_was_said_before_it(judge_kernels: ModuleType) -> None:
    verify = partial(Progress, phase=Phase.VERIFY)
    said = [Progress(phase=Phase.BUILD), verify(), verify(done=1, total=3)]
    screen = [verify(), verify(done=1, total=2), verify(done=2, total=2)]
    again = [verify(), verify(done=2, total=3), verify(done=3, total=3)]
    ends = [0.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.5, 8.5]
    steps = list(zip(said + screen + again, ends, strict=True))
    assert judge_kernels.trial_seconds(steps, 3) == [2.0, 0.5, 1.0]
    twice = [*steps, (verify(), 9.0), (verify(done=1, total=3), 9.25)]
    assert judge_kernels.trial_seconds(twice, 3) == [0.25]
