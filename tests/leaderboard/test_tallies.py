"""What boards count: attempts by problem and kind, summed up, packed, and narrowed. Pure."""

from __future__ import annotations

import json
import random
import statistics
from typing import Any

import pytest

from leaderboard.metrics import scores, thresholds
from leaderboard.metrics.tallies import Narrow, Tally, cell_of, tally_of
from leaderboard.read_model import leaderboard_rows
from leaderboard.read_model.cell_columns import (
    NUMBERS,
    Columns,
    Packed,
    unpack_cells,
    unpack_results,
    unpack_some,
)
from leaderboard.read_model.kernel_filters import parts_of

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
        "utilisation": 0.25 if is_correct else None,
        "backend": "cuda",
        "mechanisms": [],
        "nccl": False,
        "kernel": f"kernel-{number}",
        **changes,
    }


def test_a_cell_tells_of_the_fastest_correct_kernel() -> None:
    rows = [attempt(1), attempt(2, speedup=1.5, utilisation=0.4), attempt(3, speedup=1.2)]
    cell = tally_of(3, "tensor", rows).cell
    assert (cell.problem, cell.category, cell.made, cell.correct) == (3, "tensor", 3, 2)
    assert (cell.best_speedup, cell.verdict, cell.mode) == (1.5, "ok", "correct")
    assert (cell.kernel, cell.run, cell.utilisation) == ("kernel-2", "run-2", 0.4)


def test_without_a_correct_kernel_a_cell_tells_of_what_came_furthest() -> None:
    verdicts = ("build_error", "output_mismatch", "runtime_error")
    rows = [attempt(n, verdict=verdict) for n, verdict in enumerate(verdicts, 1)]
    cell = tally_of(3, "tensor", rows).cell
    assert (cell.best_speedup, cell.correct, cell.mode) == (None, 0, "output mismatch")
    assert cell.kernel == "kernel-2"


def test_what_is_filtered_out_counts_as_failed() -> None:
    rows = [
        attempt(1, speedup=3.0, nccl=True, mechanisms=["nccl"]),
        attempt(2, speedup=2.0, mechanisms=["tma"]),
        attempt(3, speedup=1.0, backend="triton"),
    ]
    columns = Columns.of([tally_of(3, "tensor", rows)])
    for narrow, speedup in (
        (Narrow(nccl_free=True), 2.0),
        (Narrow(mechanism="tma"), 2.0),
        (Narrow(backend="triton"), 1.0),
        (Narrow(backend="cuda"), 3.0),
    ):
        (part,), cell = parts_of(columns, narrow), cell_of(3, "tensor", rows, narrow)
        result = part.results
        assert cell is not None
        assert result.made == cell.made == 3
        assert cell.best_speedup == max(result.speedups) == speedup
    for narrow in (
        Narrow(backend="cpp"),
        Narrow(category="other"),
        Narrow(problems=frozenset((4,))),
        Narrow(backend="cuda", category="other"),
    ):
        assert not list(parts_of(columns, narrow))
        assert cell_of(3, "tensor", rows, narrow) is None
        assert leaderboard_rows.totals_of(columns, 3, narrow) is None


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


def tallies(seed: int) -> list[Tally]:
    return [tally_of(number, "abc"[number % 3], rows) for number, rows in drawn(seed).items()]


@pytest.mark.parametrize("seed", range(5))
def test_packed_columns_come_back_whatever_their_order(seed: int) -> None:
    found = tallies(seed)
    shuffled = random.Random(seed).sample(found, len(found))
    packed = Columns.of(found).pack()
    assert Columns.unpack(packed).pack() == packed == Columns.of(shuffled).pack()
    assert unpack_cells(packed.cells, packed.kernels) == tuple(one.cell for one in found)
    for names in (("problem",), ("best_low", "mode"), NUMBERS[:-1]):
        columns = [list(Columns.unpack(packed).numbers[NUMBERS.index(name)]) for name in names]
        assert unpack_some(packed.cells, names) == columns
    assert unpack_results(packed.cells, packed.speedups) == tuple(one.results for one in found)


@pytest.mark.parametrize("seed", range(5))
def test_a_problem_put_in_leaves_what_a_rebuild_makes(seed: int) -> None:
    """One after the other, each once with other attempts before, and one taken out again."""
    found, others = tallies(seed), tallies(seed + 1)
    draw = random.Random(seed)
    steps = [*draw.sample(others, len(others)), *draw.sample(found, len(found))]
    columns: dict[str, Any] = leaderboard_rows.columns_of(steps[:1], 3)
    for tally in steps[1:]:
        columns |= difference(columns, tally.cell.problem, tally)
    assert columns == leaderboard_rows.columns_of(found, 3)
    gone = draw.choice(found)
    columns |= difference(columns, gone.cell.problem, None)
    assert columns == leaderboard_rows.columns_of([one for one in found if one is not gone], 3)


def test_columns_that_stay_as_they_are_are_not_written_again() -> None:
    first = tallies(1)[0]
    columns: dict[str, Any] = leaderboard_rows.columns_of(tallies(1), 3)
    again = difference(columns, first.cell.problem, first)
    assert set(again) == {"attempted", "made", "total", "solved"}
    assert columns | again == columns


def difference(columns: dict[str, Any], problem: int, tally: Tally | None) -> dict[str, Any]:
    packed = Packed(*(columns[name] for name in Packed._fields))
    stored = leaderboard_rows.Stored(packed, columns["by_category"], columns["by_threshold"])
    return leaderboard_rows.with_tally(stored, problem, tally, 3) or {}


@pytest.mark.parametrize("seed", range(5))
def test_totals_say_what_the_results_say(seed: int) -> None:
    found = leaderboard_rows.columns_of(tallies(seed), 3)
    every = [one.results for one in tallies(seed)]
    by_category = json.loads(found["by_category"])
    assert list(by_category) == sorted({one.category for one in every})
    for category, read in {"": json.loads(found["total"]), **by_category}.items():
        totals = leaderboard_rows.Totals(*read)
        results = [one for one in every if category in ("", one.category)]
        assert scores.score_of(totals.summed, 12, k=3) == scores.score(results, 12, k=3)
        assert sum(totals.modes) == sum(result.made for result in results)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_added_up_for_every_threshold_is_what_each_one_says(seed: int) -> None:
    results = [one.results for one in tallies(seed)]
    packed = thresholds.pack(results, 3)
    for p in (0.0, 0.35, 1.0, 1.5, 3.95, 4.0):
        at, sums = thresholds.place_of(p), scores.sums(results, k=3, p=p)
        found = thresholds.unpack(packed[at : at + thresholds.RECORD.size])
        expected = [getattr(sums, name) for name in found._fields]
        assert list(found) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "narrow",
    [
        Narrow(nccl_free=True),
        Narrow(backend="triton", category="a"),
        Narrow(mechanism="tma", problems=frozenset((2, 3, 5, 7))),
        Narrow(problems=frozenset((1, 2))),
    ],
)
def test_narrowed_totals_are_those_of_the_attempts_that_count(seed: int, narrow: Narrow) -> None:
    rows = drawn(seed)
    columns = Columns.of(tallies(seed))
    found = leaderboard_rows.totals_of(columns, 3, narrow)
    made = (cell_of(n, "abc"[n % 3], own, narrow) for n, own in rows.items())
    cells = [cell for cell in made if cell]
    assert bool(found) == bool(cells)
    if found is None:
        return
    results = [part.results for part in parts_of(columns, narrow)]
    assert [result.problem for result in results] == [cell.problem for cell in cells]
    assert [result.correct for result in results] == [cell.correct for cell in cells]
    assert found.summed == scores.sums(results, k=3)
    solved = [cell.utilisation for cell in cells if cell.correct]
    known = [value for value in solved if value is not None]
    assert found.utilisation == (statistics.median(known) if known else None)
    assert set(found.backends) == {cell.backend for cell in cells}
    assert found.modes[-1] == sum(cell.correct for cell in cells)


@pytest.mark.parametrize("k", [1, 3])
def test_a_curve_is_the_share_at_every_threshold(k: int) -> None:
    results, points = [one.results for one in tallies(1)], [0.0, 0.5, 1.0, 1.5, 4.0]
    expected = [scores.share_fast(results, 12, k, p) for p in points]
    assert scores.fast_curve(results, 12, points, k) == pytest.approx(expected)
