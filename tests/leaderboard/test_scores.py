"""The metrics, against their definitions and against pandas."""

from __future__ import annotations

import itertools
import math
import statistics
import subprocess
import sys
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.messages.report import Verdict
from leaderboard.metrics import intervals, scores
from leaderboard.metrics.dominance import LEAST_CHANGE, dominant
from leaderboard.metrics.failures import FAILURE_MODES, failure_mode
from leaderboard.metrics.scores import Attempts

SPEEDUPS = st.floats(min_value=0.01, max_value=50.0)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int, int]:
    n = draw(st.integers(1, 8))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


@st.composite
def boards(draw: st.DrawFn) -> list[Attempts]:
    rows = []
    for problem in range(draw(st.integers(0, 6))):
        speedups = tuple(draw(st.lists(SPEEDUPS, max_size=4)))
        made = len(speedups) + draw(st.integers(0, 3))
        rows.append(Attempts(problem=problem, category="c", made=made, speedups=speedups))
    return rows


@given(counts())
def test_pass_at_k_equals_counting_the_subsets(case: tuple[int, int, int]) -> None:
    n, c, k = case
    subsets = list(itertools.combinations([True] * c + [False] * (n - c), k))
    expected = Fraction(sum(any(subset) for subset in subsets), len(subsets))
    assert scores.pass_at_k(n, c, k) == pytest.approx(float(expected), abs=1e-12)


@given(counts())
def test_pass_at_1_is_the_mean_and_more_draws_never_hurt(case: tuple[int, int, int]) -> None:
    n, c, k = case
    assert scores.pass_at_k(n, c, 1) == pytest.approx(c / n)
    assert scores.pass_at_k(n, c, k) <= scores.pass_at_k(n, c, k + 1) + 1e-12


def test_missing_attempts_count_as_failed() -> None:
    assert scores.pass_at_k(0, 0, 3) == 0.0
    assert scores.pass_at_k(1, 1, 3) == 1.0
    assert scores.pass_at_k(2, 0, 3) == 0.0


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="needs k"):
        scores.pass_at_k(n, c, k)


@given(boards(), st.integers(1, 4), st.floats(0, 10), st.floats(0, 10))
def test_fast_p_never_grows_with_p_and_never_passes_pass_at_k(
    results: list[Attempts], k: int, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    at_low = scores.share_fast(results, 10, k, low)
    at_high = scores.share_fast(results, 10, k, high)
    passing = scores.share_passing(results, 10, k)
    assert at_low is not None
    assert at_high is not None
    assert passing is not None
    assert at_high <= at_low + 1e-12 <= passing + 2e-12


def test_a_kernel_exactly_as_fast_as_the_reference_is_not_faster() -> None:
    result = Attempts(problem=1, category="c", made=1, speedups=(1.0,))
    assert scores.share_fast([result], 1, 1, 1.0) == 0.0
    assert scores.share_fast([result], 1, 1, 0.99) == 1.0


@given(boards(), st.floats(0, 10))
def test_pandas_finds_the_same_numbers(results: list[Attempts], p: float) -> None:
    frame = pd.DataFrame(
        [
            (r.problem, i < r.correct, r.speedups[i] if i < r.correct else math.nan)
            for r in results
            for i in range(r.made)
        ],
        columns=["problem", "correct", "speedup"],
    )
    scored = 7
    found = scores.score(results, scored, k=1, p=p)
    passing = frame.groupby("problem")["correct"].mean().sum() / scored
    fast = (frame["speedup"] > p).groupby(frame["problem"]).mean().sum() / scored
    assert found.pass_at_1 == pytest.approx(passing, abs=1e-9)
    assert found.fast_at_1 == pytest.approx(fast, abs=1e-9)
    right = frame[frame["correct"].astype(bool)]
    assert found.correct == right["problem"].nunique()
    assert found.attempted == frame["problem"].nunique()
    if found.correct:
        logs = right["speedup"].map(math.log).groupby(right["problem"]).mean()
        assert found.geometric_mean == pytest.approx(math.exp(logs.mean()))
    else:
        assert found.geometric_mean is None


def test_leaving_problems_out_lowers_the_score() -> None:
    right = [Attempts(problem=i, category="c", made=1, speedups=(2.0,)) for i in range(4)]
    assert scores.score(right, 8).pass_at_1 == 0.5
    assert scores.score(right[:2], 8).pass_at_1 == 0.25
    assert scores.score(right[:2], 8).attempted == 2


def test_a_problem_counts_once_in_the_geometric_mean() -> None:
    results = [
        Attempts(problem=1, category="c", made=3, speedups=(4.0, 4.0, 4.0)),
        Attempts(problem=2, category="c", made=1, speedups=(1.0,)),
        Attempts(problem=3, category="c", made=2),
    ]
    assert scores.geometric_mean_speedup(results) == pytest.approx(2.0)


def test_nothing_scored_gives_no_number() -> None:
    empty = scores.score([], 0)
    assert (empty.pass_at_1, empty.pass_at_1_interval, empty.geometric_mean) == (None, None, None)


def test_more_results_than_problems_are_refused() -> None:
    one = Attempts(problem=1, category="c", made=1)
    with pytest.raises(ValueError, match="only 0 are scored"):
        scores.score([one], 0)
    with pytest.raises(ValueError, match="only once"):
        scores.score([one, one], 5)


@pytest.mark.parametrize(("made", "speedups"), [(0, (1.0,)), (1, (0.0,)), (1, (math.nan,))])
def test_attempts_that_make_no_sense_are_refused(made: int, speedups: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"attempts|speedup"):
        Attempts(problem=1, category="c", made=made, speedups=speedups)


@given(st.integers(1, 500), st.data())
def test_the_interval_holds_the_share_and_narrows(n: int, data: st.DataObject) -> None:
    share = data.draw(st.integers(0, n)) / n
    few, many = intervals.wilson_interval(share, n), intervals.wilson_interval(share, 4 * n)
    assert few is not None
    assert many is not None
    assert 0.0 <= few.low <= share <= few.high <= 1.0
    assert many.high - many.low < few.high - few.low


def test_the_interval_agrees_with_the_published_formula() -> None:
    # Brown, Cai, DasGupta 2001: 28 of 87 at 95 %.
    interval = intervals.wilson_interval(28 / 87, 87)
    assert interval is not None
    assert (round(interval.low, 3), round(interval.high, 3)) == (0.233, 0.426)


@given(st.lists(st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.1 + 0.2, 0.3, 0.5]))))
def test_ties_share_a_place_and_the_unknown_come_last(values: list[float | None]) -> None:
    ordered = scores.in_order(values, lambda value: value)
    places = scores.places(ordered)
    known = [value for value in ordered if value is not None]
    assert ordered[len(known) :] == [None] * (len(values) - len(known))
    assert places[len(known) :] == [None] * (len(values) - len(known))
    for value, place in zip(known, places, strict=False):
        better = sum(round(other, 9) > round(value, 9) for other in known)
        tied = sum(round(other, 9) == round(value, 9) for other in known) > 1
        assert place == f"{better + 1}{'=' if tied else ''}"


def test_unknown_values_stay_last_in_ascending_order_too() -> None:
    assert scores.in_order([None, 2.0, 1.0], lambda v: v, descending=False) == [1.0, 2.0, None]


def test_every_verdict_about_a_kernel_has_a_failure_mode() -> None:
    for verdict in Verdict:
        mode = failure_mode(verdict.value)
        assert (mode in FAILURE_MODES) is verdict.counts
    assert failure_mode("runtime_error", "shape") == "tensor shape error"
    assert failure_mode("runtime_error", "api") == "attribute / name / API typo"
    assert failure_mode("ok", "shape") == "correct"


def test_scores_loads_without_django() -> None:
    code = "import sys, leaderboard.metrics.scores; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_roofline_credit_is_the_mean_of_what_attempts_earn() -> None:
    assert scores.roofline_credit(4, [0.5, 1.2]) == pytest.approx((0.5 + 1.0) / 4)
    assert scores.roofline_credit(2, []) == 0.0
    assert scores.roofline_credit(2, [0.5, None]) is None  # never less than it is


@pytest.mark.parametrize(
    ("freedom", "expected"), [(2, 4.303), (5, 2.571), (10, 2.228), (73, 1.993)]
)
def test_students_t_is_that_of_tables(freedom: int, expected: float) -> None:
    assert intervals.student_95(freedom) == pytest.approx(expected, rel=0.01)


def test_the_interval_of_a_mean_speedup_holds_it_and_needs_three_problems() -> None:
    logs = [math.log(speedup) for speedup in (0.5, 1.0, 2.0, 4.0)]
    found = intervals.geometric_interval(math.fsum(logs), math.fsum(x * x for x in logs), 4)
    assert found
    spread = 3.182 * statistics.stdev(logs) / 2
    assert found.low == pytest.approx(2**0.5 * math.exp(-spread), rel=0.01)
    assert found.high == pytest.approx(2**0.5 * math.exp(spread), rel=0.01)
    assert intervals.geometric_interval(0.5, 0.25, 2) is None


@given(st.dictionaries(st.integers(1, 87), SPEEDUPS, max_size=12))
def test_the_dominant_problem_is_the_one_whose_absence_changes_the_mean_most(
    speedups: dict[int, float],
) -> None:
    def without(left_out: int | None) -> float:
        return statistics.geometric_mean(x for number, x in speedups.items() if number != left_out)

    found = dominant({number: math.log(x) for number, x in speedups.items()})
    changes = {n: math.log(without(n) / without(None)) for n in speedups if len(speedups) > 1}
    if found is None:
        assert all(abs(c) <= math.log1p(LEAST_CHANGE) + 1e-9 for c in changes.values())
        return
    assert abs(changes[found.problem]) == pytest.approx(max(map(abs, changes.values())))
    assert found.speedup == pytest.approx(speedups[found.problem])
    assert found.without == pytest.approx(without(found.problem))


def test_one_slow_kernel_dominates_and_equals_do_not() -> None:
    fast = dict.fromkeys(range(1, 10), math.log(2.4))
    slow = dominant({**fast, 73: math.log(0.01)})
    assert slow == pytest.approx((73, 0.01, 2.4))
    assert dominant(fast) is None
    assert dominant({73: math.log(0.01)}) is None
    assert dominant({}) is None
