"""What boards count: attempts by problem and kind, summed up, packed, and narrowed. Pure."""

from __future__ import annotations

import json
import random
import statistics
from typing import Any

import pytest

from leaderboard.metrics import scores, thresholds
from leaderboard.metrics.board_numbers import MEASURED
from leaderboard.metrics.scores import Attempts
from leaderboard.metrics.tallies import KernelFilter, cell_of
from leaderboard.read_model import leaderboard_rows
from leaderboard.read_model.kernel_filters import ProblemResult, outcomes_of, parts_of
from leaderboard.read_model.leaderboard_rows import Totals

BACKENDS = ("cuda", "triton")
TAGS: tuple[list[str], ...] = ([], ["nccl"], ["symmetric_memory", "tma"])


def attempt(number: int, **changes: Any) -> dict[str, Any]:
    """An entry of Summary.attempts; correct where it has a speedup."""
    is_correct = "speedup" in changes
    return {
        "attempt": number,
        "run": f"run-{number}",
        "verdict": "ok" if is_correct else "output_mismatch",
        "cause": None,
        "speedup": None,
        "low": changes["speedup"] * 0.9 if is_correct else None,
        **dict.fromkeys(MEASURED, 0.25 if is_correct else None),
        "backend": "cuda",
        "mechanisms": [],
        "nccl": False,
        "kernel": f"kernel-{number}",
        "output_tokens": 100 * number,
        "usd": 0.1 * number,
        **changes,
    }


def test_a_cell_tells_of_the_fastest_correct_kernel() -> None:
    rows = [attempt(1), attempt(2, speedup=1.5, utilisation=0.4), attempt(3, speedup=1.2)]
    cell = cell_of(3, "tensor", rows)
    assert cell is not None
    assert (cell.problem, cell.category, cell.made, cell.correct) == (3, "tensor", 3, 2)
    assert (cell.best_speedup, cell.verdict, cell.mode) == (1.5, "ok", "correct")
    assert (cell.kernel, cell.run, cell.utilisation) == ("kernel-2", "run-2", 0.4)


def test_without_a_correct_kernel_a_cell_tells_of_what_came_furthest() -> None:
    verdicts = ("build_error", "output_mismatch", "runtime_error")
    rows = [attempt(n, verdict=verdict) for n, verdict in enumerate(verdicts, 1)]
    cell = cell_of(3, "tensor", rows)
    assert cell is not None
    assert (cell.best_speedup, cell.correct, cell.mode) == (None, 0, "output mismatch")
    assert cell.kernel == "kernel-2"


def test_what_is_filtered_out_counts_as_failed() -> None:
    rows = [
        attempt(1, speedup=3.0, nccl=True, mechanisms=["nccl"]),
        attempt(2, speedup=2.0, mechanisms=["tma"]),
        attempt(3, speedup=1.0, backend="triton"),
    ]
    stored = outcomes_of([(3, "tensor", rows)])
    for narrow, speedup in (
        (KernelFilter(nccl_free=True), 2.0),
        (KernelFilter(mechanism="tma"), 2.0),
        (KernelFilter(backend="triton"), 1.0),
        (KernelFilter(backend="cuda"), 3.0),
    ):
        (part,), cell = parts_of(stored, narrow), cell_of(3, "tensor", rows, narrow)
        result = part.results
        assert cell is not None
        assert result.made == cell.made == 3
        assert cell.best_speedup == max(result.speedups) == speedup
    for narrow in (
        KernelFilter(backend="cpp"),
        KernelFilter(category="other"),
        KernelFilter(problems=frozenset((4,))),
        KernelFilter(backend="cuda", category="other"),
    ):
        assert not list(parts_of(stored, narrow))
        assert cell_of(3, "tensor", rows, narrow) is None


def drawn(seed: int) -> dict[int, list[dict[str, Any]]]:
    """Attempts at ten problems, at random."""
    draw = random.Random(seed)
    found: dict[int, list[dict[str, Any]]] = {}
    for number in range(1, 11):
        for n in range(1, draw.randrange(2, 9)):
            tags = draw.choice(TAGS)
            changes: dict[str, Any] = {"mechanisms": tags, "nccl": "nccl" in tags}
            if draw.random() < 0.6:
                changes["speedup"] = draw.uniform(0.2, 4)
                changes["utilisation"] = draw.choice((None, draw.random()))
            made = attempt(n, backend=draw.choice(BACKENDS), **changes)
            found.setdefault(number, []).append(made)
    return found


def problems(seed: int) -> list[tuple[int, str, list[dict[str, Any]]]]:
    return [(number, "abc"[number % 3], rows) for number, rows in drawn(seed).items()]


def results(seed: int) -> list[Attempts]:
    """Of every problem, made of its attempts one by one."""
    return [
        Attempts(
            problem=number,
            category=category,
            made=len(rows),
            speedups=tuple(row["speedup"] for row in rows if row["speedup"] is not None),
            lows=tuple(row["low"] for row in rows if row["low"] is not None),
        )
        for number, category, rows in problems(seed)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_stored_columns_say_the_same_whatever_the_order_of_problems(seed: int) -> None:
    found = problems(seed)
    columns = leaderboard_rows.columns_of(found, 3)
    assert leaderboard_rows.columns_of(random.Random(seed).sample(found, len(found)), 3) == columns
    assert leaderboard_rows.cells_in(columns["cells"]) == tuple(cell_of(*one) for one in found)
    parts = list(parts_of(json.loads(columns["outcomes"])))
    assert [part.results for part in parts] == results(seed)
    told = [[part.ended.count("correct"), len(part.ended)] for part in parts]
    assert told == [[one.correct, one.made] for one in results(seed)]
    other = leaderboard_rows.columns_of(problems(seed + 1), 3)
    assert other["digest"] != columns["digest"]


@pytest.mark.parametrize("seed", range(5))
def test_totals_say_what_the_results_say(seed: int) -> None:
    found = leaderboard_rows.columns_of(problems(seed), 3)
    every = results(seed)
    by_category = json.loads(found["by_category"])
    assert list(by_category) == sorted({one.category for one in every})
    for category, read in {"": json.loads(found["total"]), **by_category}.items():
        totals = Totals.of(read)
        own = [one for one in every if category in ("", one.category)]
        assert scores.score_of(totals.sums, 12, k=3) == scores.score(own, 12, k=3)
        assert sum(totals.modes.values()) == sum(result.made for result in own)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_added_up_for_every_threshold_is_what_each_one_says(seed: int) -> None:
    every = results(seed)
    stored = thresholds.curves(every, 3)
    for p in (0.0, 0.35, 1.0, 1.5, 3.95, 4.0):
        sums = scores.sums(every, k=3, p=p)
        found = thresholds.at(p, stored)
        expected = [getattr(sums, name) for name in found._fields]
        assert list(found) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "narrow",
    [
        KernelFilter(nccl_free=True),
        KernelFilter(backend="triton", category="a"),
        KernelFilter(mechanism="tma", problems=frozenset((2, 3, 5, 7))),
        KernelFilter(problems=frozenset((1, 2))),
    ],
)
def test_narrowed_totals_are_those_of_the_attempts_that_count(
    seed: int, narrow: KernelFilter
) -> None:
    parts: list[ProblemResult] = list(parts_of(outcomes_of(problems(seed)), narrow))
    cells = [cell for one in problems(seed) if (cell := cell_of(*one, narrow))]
    assert [part.problem for part in parts] == [cell.problem for cell in cells]
    if not parts:
        return
    found = leaderboard_rows.totals_of(parts, 3)
    assert [part.results.correct for part in parts] == [cell.correct for cell in cells]
    assert found.sums == scores.sums([part.results for part in parts], k=3)
    solved = [cell.utilisation for cell in cells if cell.correct]
    known = [value for value in solved if value is not None]
    assert found.numbers["utilisation"] == (statistics.median(known) if known else None)
    assert set(found.backends) == {cell.backend for cell in cells}
    assert found.modes.get("correct", 0) == sum(cell.correct for cell in cells)


@pytest.mark.parametrize("k", [1, 3])
def test_a_curve_is_the_share_at_every_threshold(k: int) -> None:
    every, points = results(1), [0.0, 0.5, 1.0, 1.5, 4.0]
    expected = [scores.share_fast(every, 12, k, p) for p in points]
    assert scores.fast_curve(every, 12, points, k) == pytest.approx(expected)
