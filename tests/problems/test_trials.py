"""Which inputs a kernel is judged on."""

from __future__ import annotations

import pytest

from problems.spec import Problem, Size
from problems.trials import SCALES, TrialSpec, correctness_trials, timed_trial, trials_before_timing

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


def test_hardened_starts_with_the_published_shape_at_three_scales() -> None:
    first = hardened(4)
    assert [(t.m, t.n) for t in first] == [(64, 32)] * 4
    assert tuple(t.scale for t in first[:3]) == SCALES
    assert first[3].shift != 0


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


def test_timed_trials_are_of_the_published_shape_at_the_scales_of_correctness_trials() -> None:
    slots = [timed_trial(problem(), "tiny", 7, slot) for slot in range(8)]
    assert {(spec.trial, spec.m, spec.n) for spec in slots} == {(7, 64, 32)}
    kinds = [(spec.scale, spec.shift) for spec in slots]
    assert kinds[:4] == kinds[4:] == [(spec.scale, spec.shift) for spec in hardened(4)]


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
        timed_trial(problem(), "huge", 0)
    with pytest.raises(ValueError, match="use upstream or hardened"):
        correctness_trials(problem(), "tiny", "soft", 1, b"a")
