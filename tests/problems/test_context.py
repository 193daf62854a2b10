"""Inputs and where their randomness comes from."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import problems
from problems.context import GAIN_HIGH, GAIN_LOW, RankContext
from problems.spec import GroupRef
from problems.trials import TrialSpec, correctness_trials, timed_trial

SPEC = TrialSpec(trial=3, m=64, n=32, note="test")
PROBLEM = problems.load(problems.find("allreduce")).problem


def context(
    profile: str, *, rank: int = 1, spec: TrialSpec = SPEC, secret: bytes = b"s"
) -> RankContext:
    return RankContext(
        rank=rank,
        world_size=4,
        number=13,
        spec=spec,
        profile=profile,
        secret=secret,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )


def hardened(*, rank: int = 1, spec: TrialSpec = SPEC, secret: bytes = b"s") -> RankContext:
    return context("hardened", rank=rank, spec=spec, secret=secret)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_upstream_draws_are_those_of_the_published_global_seed(dtype: torch.dtype) -> None:
    torch.manual_seed(42 + 1000 * 13 + 1 + 1000003 * 3)
    published = [torch.randn(5, 7, dtype=dtype), torch.randn(3, dtype=dtype)]
    upstream = replace(context("upstream"), dtype=dtype)
    assert torch.equal(upstream.randn(5, 7), published[0])
    assert torch.equal(upstream.randn(3), published[1])


def test_upstream_values_that_nobody_drew_are_the_published_ones() -> None:
    upstream = context("upstream")
    ids = torch.arange(6)
    assert torch.equal(upstream.filled(2.5, 2, 3), torch.full((2, 3), 2.5))
    assert torch.equal(upstream.varied(ids), ids.float())
    assert torch.equal(upstream.integers(ids, 0, 2), ids)
    assert torch.equal(upstream.sample(ids, 100), ids)
    assert upstream.choose(10, (1, 2)) == 10
    assert upstream.pick("published", "hardened") == "published"


def test_published_values_draw_nothing_upstream() -> None:
    plain, mixed = context("upstream"), context("upstream")
    mixed.filled(1.0, 4)
    mixed.varied(torch.zeros(4))
    mixed.integers(torch.arange(4), 0, 9)
    mixed.choose(1, (1, 2))
    assert torch.equal(plain.randn(9), mixed.randn(9))


def test_hardened_draws_depend_on_rank_trial_and_secret() -> None:
    base = hardened().randn(64)
    assert torch.equal(base, hardened().randn(64))
    for other in (
        hardened(rank=2),
        hardened(spec=replace(SPEC, trial=4)),
        hardened(secret=b"t"),
        replace(hardened(), number=14, _streams={}),
    ):
        assert not torch.equal(base, other.randn(64))


def test_shared_draws_are_the_same_on_every_rank_whatever_else_was_drawn() -> None:
    one, other = hardened(rank=0), hardened(rank=3)
    other.randn(100)
    assert torch.equal(one.randn(8, shared=True), other.randn(8, shared=True))
    ids = torch.arange(50)
    assert torch.equal(one.integers(ids, 0, 9, shared=True), other.integers(ids, 0, 9, shared=True))


def test_hardened_values_carry_scale_mean_and_a_hidden_gain() -> None:
    spec = replace(SPEC, scale=8.0, shift=0.5)
    gains = []
    for trial in range(20):
        values = hardened(spec=replace(spec, trial=trial)).randn(40_000)
        assert values.mean().item() == pytest.approx(0.5, abs=0.3)
        gains.append(values.std().item() / 8)
    assert min(gains) > GAIN_LOW * 0.97
    assert max(gains) < GAIN_HIGH * 1.03
    assert max(gains) / min(gains) > 1.2


def test_gains_are_ones_upstream_and_few_large_powers_of_two_hardened() -> None:
    assert bool((context(profile="upstream").gains(40) == 1).all())
    gains = context(profile="hardened").gains(4000, share=1 / 8, shared=True)
    assert set(gains.tolist()) == {0.5, 8.0}
    assert 400 < int((gains == 8).sum()) < 600
    other = context(profile="hardened", rank=1).gains(4000, share=1 / 8, shared=True)
    assert torch.equal(gains, other)
    values = torch.randn(4000)
    assert torch.equal(values * gains / gains, values)


def test_hardened_replaces_what_upstream_leaves_constant() -> None:
    ids = torch.arange(1000)
    assert hardened().filled(2.0, 100).std() > 0.1
    assert hardened().varied(torch.zeros(1000), spread=3.0).std().item() == pytest.approx(
        3, rel=0.2
    )
    drawn = hardened().integers(ids, -1, 5)
    assert (drawn.min().item(), drawn.max().item(), drawn.dtype) == (-1, 4, torch.int64)
    sampled = hardened().sample(ids, 5000)
    assert len(set(sampled.tolist())) == 1000
    assert sampled.max() >= 1000


def test_few_hidden_values_and_the_last_one_are_peaks() -> None:
    ones = torch.ones(50, 4)
    assert torch.equal(context("upstream").peaked(ones, 9.0), ones)
    peaked = hardened().peaked(torch.ones(50, 4), 9.0)
    assert set(peaked.flatten().tolist()) == {1.0, 9.0}
    assert peaked.shape == (50, 4)
    assert peaked[-1, -1] == 9
    assert 2 <= int((peaked == 9).sum()) <= 8
    elsewhere = hardened(secret=b"other").peaked(torch.ones(50, 4), 9.0)
    assert not torch.equal(elsewhere, peaked)


def test_choices_are_shared_and_few_trials_meet_every_option() -> None:
    options = (1.0, 2.0, 3.0)
    by_rank = [
        [hardened(rank=r, spec=replace(SPEC, trial=t)).choose(9.0, options) for t in range(3)]
        for r in range(2)
    ]
    assert by_rank[0] == by_rank[1]
    assert sorted(by_rank[0]) == list(options)


def test_no_choice_of_a_trial_tells_another_or_the_scale() -> None:
    pairs, with_scale = set(), set()
    for secret in range(60):
        for spec in correctness_trials(PROBLEM, "tiny", "hardened", 2, bytes([secret])):
            seen = hardened(spec=spec, secret=bytes([secret]))
            pairs.add((seen.choose(0, range(3)), second := seen.choose(0, range(3))))
            with_scale.add((spec.scale, second))
    assert len(pairs) == len(with_scale) == 9


def timed_call(trial: int) -> RankContext:
    return hardened(spec=replace(SPEC, trial=trial, timed=True))


def test_options_that_change_work_are_for_correctness_trials_alone() -> None:
    specs = [replace(SPEC, trial=trial, timed=timed) for timed in (False, True) for trial in (0, 1)]
    given = [hardened(spec=spec).choose_untimed(7, (1, 2)) for spec in specs]
    assert (sorted(given[:2]), given[2:]) == ([1, 2], [1, 1])
    assert context("upstream").choose_untimed(7, (1, 2)) == 7


def test_options_of_timed_calls_follow_the_trial_number_in_an_order_of_their_own() -> None:
    timed = [timed_call(trial).choose(9, (4, 5, 6)) for trial in range(6, 36)]
    blocks = [tuple(timed[first : first + 3]) for first in range(0, 30, 3)]
    assert {tuple(sorted(block)) for block in blocks} == {(4, 5, 6)}
    assert len(set(blocks)) > 2
    checked = [hardened(spec=replace(SPEC, trial=t)).choose(9, (4, 5, 6)) for t in range(6, 36)]
    assert timed != checked
    assert (timed_call(7).turn, hardened().turn) == (7, SPEC.trial)


def test_lengths_of_a_timed_call_do_not_follow_its_place_in_a_round() -> None:
    sort = problems.load(problems.find("distributed_sample_sort"))

    def lengths(trial: int) -> tuple[int, ...]:
        spec = timed_trial(sort.problem, "tiny", trial, b"s")
        dims = sort.dims(spec.m, spec.n, 4)
        ranks = [hardened(rank=r, spec=spec) for r in range(4)]
        return tuple(len(sort.make_inputs(own, dims)["local_shard"]) for own in ranks)  # type: ignore[arg-type]

    rounds = [[lengths(6 + 16 * number + place) for place in (0, 5)] for number in range(4)]
    for same_place in zip(*rounds, strict=True):
        assert len(set(same_place)) == len(rounds)


def test_lengths_differ_among_ranks_and_from_trial_to_trial() -> None:
    found = []
    for trial in range(12):
        spec = replace(SPEC, trial=trial)
        first = hardened(rank=0, spec=spec).ragged([9] * 4, (5, 6, 7))
        assert hardened(rank=3, spec=spec).ragged([9] * 4, (5, 6, 7)) == first
        assert sorted(first[:3]) == [5, 6, 7]
        found.append(tuple(first))
    assert len(set(found)) > 4
    assert context("upstream").ragged([1, 2, 3, 4], (0,)) == [1, 2, 3, 4]


def test_a_plain_trial_has_first_options_and_published_lengths() -> None:
    plain = hardened(spec=replace(SPEC, timed=True, is_plain=True))
    assert plain.choose(9, (4, 5, 6)) == 4
    assert plain.ragged([1, 2, 3, 4], (0, 7)) == [1, 2, 3, 4]


def test_a_group_is_named_by_its_axis() -> None:
    assert hardened().group("ep") == GroupRef(axis="ep")
