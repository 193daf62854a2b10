"""Whether runs that kept processes have served change what is measured is told by three judges."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evaluator.evaluate import Cancelled
from evaluator.judge import pool, prefork
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.report import Report
from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator.test_messages import REPORT


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    return importlib.import_module("kept_processes")


@pytest.mark.parametrize("limit", [200, 1])
def test_a_judge_replaces_what_has_served_as_many_runs(
    kept: ModuleType, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    seen: list[tuple[int, ...]] = []
    monkeypatch.setattr(pool, "MOST_RUNS", pool.MOST_RUNS)
    monkeypatch.setattr(prefork, "main", lambda fd, mode: seen.append((pool.MOST_RUNS, fd)))
    monkeypatch.setattr("sys.argv", ["-c", "7", "warm"])
    exec(kept.SERVES.format(limit=limit), {})
    assert seen == [(limit, 7)]


def test_three_judges_take_turns_and_go_on_where_a_call_has_stopped(
    kept: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers: list[Report | Exception] = []

    def evaluate(*_: object) -> Report:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(kept, "evaluate", evaluate)
    out = tmp_path / "out.jsonl"
    answers[:] = [REPORT] * 4 + [EvaluatorError("gone"), Cancelled()]
    kept.main([str(out), "--runs", "3"])
    answers[:] = [REPORT] * 4
    kept.main([str(out), "--runs", "3"])
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["limit"] for line in lines] == [200, 12, 1] * 3
    assert [line["served"] for line in lines] == [0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert lines[4]["failed"] == "gone"
    assert REPORT.timing
    assert lines[0]["speedup"] == REPORT.timing.speedup
    assert "limit  12: 3 runs, 2 timed" in capsys.readouterr().out


def _lines(growth: float, limit: int) -> list[dict[str, Any]]:
    noise = (1.01, 0.99, 1.0)
    return [
        {"served": run % limit, "speedup": noise[run % 3] * (1 + growth) ** (run % limit)}
        for run in range(60)
    ]


def test_what_a_run_served_adds_is_told_with_its_error(kept: ModuleType) -> None:
    assert kept.summary(200, _lines(0.01, 200)).endswith("x +- 0.022, +0.99 % +- 0.01 a run served")
    assert kept.summary(12, _lines(0.0, 12)).endswith(
        "1.000x +- 0.001, -0.03 % +- 0.03 a run served"
    )
    assert kept.summary(1, _lines(0.0, 1)) == "limit   1: 60 of 60 runs timed, 1.000x +- 0.001"
