"""Which inputs a kernel is judged on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from problems.spec import Problem, Size
from problems.trials import (
    SCALES,
    SHIFTS,
    TrialSpec,
    correctness_trials,
    plain_trial,
    secret_turn,
    timed_trial,
    trials_before_timing,
)

SIZES = {"tiny": Size(m=64, n=32), "one": Size(m=1, n=2)}


def problem(*, m_step: int | None = 1, n_step: int | None = 1) -> Problem:
    return Problem(
        number=999,
        title="t",
        source="s",
        domain="d",
        summary="s",
        statement="s",
        outputs=("out",),
        sizes=SIZES,
        m_step=m_step,
        n_step=n_step,
    )


def hardened(count: int = 24, secret: bytes = b"a", **steps: int | None) -> list[TrialSpec]:
    return list(correctness_trials(problem(**steps), "tiny", "hardened", count, secret))


def test_upstream_is_the_published_shape_from_trial_zero() -> None:
    trials = correctness_trials(problem(), "tiny", "upstream", 3, b"a")
    assert [(t.trial, t.m, t.n, t.scale, t.shift) for t in trials] == [
        (t, 64, 32, 1.0, 0.0) for t in range(3)
    ]


def test_hardened_starts_with_the_published_shape() -> None:
    assert [(t.m, t.n) for t in hardened(4)] == [(64, 32)] * 4


@pytest.mark.parametrize("secret", [b"a", b"b", b"c"])
def test_every_scale_and_mean_comes_as_often_in_a_run(secret: bytes) -> None:
    run = hardened(6, secret)
    assert Counter(t.scale for t in run) == dict.fromkeys(SCALES, 2)
    assert Counter(t.shift for t in run) == dict.fromkeys(SHIFTS, 3)


def test_scale_mean_and_shape_do_not_tell_each_other() -> None:
    run = [t for secret in range(30) for t in hardened(6, bytes([secret]))]
    kinds = {(t.scale, t.shift, "hidden" in t.note) for t in run}
    assert len(kinds) == 2 * len(SCALES) * len(SHIFTS)


def test_options_come_in_a_secret_order_in_which_few_positions_meet_all() -> None:
    orders = set()
    for secret in range(30):
        order = tuple(secret_turn(bytes([secret]), 3, position, "x") for position in range(6))
        assert sorted(order[:3]) == sorted(order[3:]) == [0, 1, 2]
        orders.add(order)
    assert len(orders) > 15


def test_hidden_shapes_are_odd_and_fit_the_published_buffers() -> None:
    hidden = [t for t in hardened(60) if "hidden" in t.note]
    assert len(hidden) == 20
    assert all(t.m % 2 and t.n % 2 and 32 <= t.m < 64 and 15 <= t.n < 32 for t in hidden)
    assert len({(t.m, t.n) for t in hidden}) > 10


def test_hidden_shapes_follow_the_secret_and_nothing_else() -> None:
    assert hardened() == hardened()
    assert hardened() != hardened(secret=b"b")


def test_a_longer_plan_starts_with_the_shorter_one() -> None:
    assert hardened(12)[:6] == hardened(6)


def test_steps_are_kept_and_none_keeps_the_published_size() -> None:
    hidden = [t for t in hardened(60, m_step=8, n_step=None) if "hidden" in t.note]
    assert all(t.m % 8 == 0 and (t.m // 8) % 2 and t.n == 32 for t in hidden)


def test_a_size_too_small_to_hide_stays() -> None:
    trials = correctness_trials(problem(), "one", "hardened", 6, b"a")
    assert {t.m for t in trials} == {1}


def test_timed_trials_are_of_the_published_shape_at_every_scale_and_mean() -> None:
    calls = [timed_trial(problem(), "tiny", trial, b"a") for trial in range(6, 18)]
    assert {(spec.m, spec.n, spec.timed) for spec in calls} == {(64, 32, True)}
    assert [spec.turn for spec in calls] == list(range(6, 18))
    assert Counter(spec.scale for spec in calls) == dict.fromkeys(SCALES, 4)
    assert Counter(spec.shift for spec in calls) == dict.fromkeys(SHIFTS, 6)
    assert calls != [timed_trial(problem(), "tiny", trial, b"b") for trial in range(6, 18)]


def test_scales_and_means_of_timed_calls_follow_the_trial_number() -> None:
    rounds = [
        tuple(timed_trial(problem(), "tiny", first + number, b"a") for number in range(6))
        for first in range(6, 66, 6)
    ]
    assert len({tuple((spec.scale, spec.shift) for spec in own) for own in rounds}) > 6


@pytest.mark.parametrize("options", range(1, 9))
def test_sixteen_calls_in_a_row_meet_every_option_wherever_they_begin(options: int) -> None:
    order = [secret_turn(b"a", options, position, "x") for position in range(64)]
    for first in range(48):
        assert set(order[first : first + 16]) == set(range(options))


def test_a_plain_trial_is_what_the_cost_counts() -> None:
    plain = plain_trial(problem(), "tiny")
    assert (plain.m, plain.n, plain.scale, plain.shift) == (64, 32, 1.0, 0.0)
    assert plain.is_plain
    assert plain.timed
    assert replace(plain, trial=7).turn == plain.turn


@pytest.mark.parametrize(("count", "before"), [(1, 1), (2, 1), (3, 1), (4, 2), (6, 4)])
def test_the_last_two_trials_come_after_the_timed_phase(count: int, before: int) -> None:
    assert trials_before_timing(count) == before


def test_those_of_a_usual_run_are_of_hidden_shapes() -> None:
    after = hardened(6)[trials_before_timing(6) :]
    assert ["hidden" in spec.note for spec in after] == [True, True]


def test_unknown_sizes_and_profiles_say_which_exist() -> None:
    with pytest.raises(ValueError, match="no size 'huge': use tiny, one"):
        correctness_trials(problem(), "huge", "hardened", 1, b"a")
    with pytest.raises(ValueError, match="no size 'huge'"):
        timed_trial(problem(), "huge", 0, b"a")
    with pytest.raises(ValueError, match="use upstream or hardened"):
        correctness_trials(problem(), "tiny", "soft", 1, b"a")
