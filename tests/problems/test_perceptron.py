"""Gradients that 8 bits cannot carry, and Adam's steps that may round to bfloat16."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear

import problems
from problems.audit.mutants import declared
from problems.audit.screen import Setting
from problems.context import RankContext
from problems.perceptron import Network, _gradients, draw_moments, draw_network, sharded_dims
from problems.running.ranks import RankPool
from problems.trials import TrialSpec
from tests.problems.rank_tasks import told_of_edits

WORLD_SIZE = 2
# What references widen to float32 for Adam's steps.
WIDENED = {
    "ddp": "W1.dtype",
    "zero1_optimizer_shard": "dtype",
    "zero2_optimizer_shard_grad": "dtype",
    "fsdp_step_e2e": "shard.dtype",
}


def context(profile: str = "hardened", *, secret: bytes = b"gradients") -> RankContext:
    return RankContext(
        rank=0,
        world_size=WORLD_SIZE,
        number=40,
        spec=TrialSpec(trial=0, m=64, n=256, note=""),
        profile=profile,
        secret=secret,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )


def gradients_of_ranks(network: Network) -> list[list[Tensor]]:
    """Return every rank's gradients of the sum of all ranks' losses, by autograd."""
    parts = (network.x.chunk(WORLD_SIZE), network.y.chunk(WORLD_SIZE))
    found = []
    for x, y in zip(*parts, strict=True):
        weights = [weight.clone().requires_grad_() for weight in network.weights]
        w1, b1, w2, b2 = weights
        error = linear(torch.relu(linear(x, w1, b1)), w2, b2) - y
        loss = error.square().sum() / network.y.numel()
        found.append(list(torch.autograd.grad(loss, weights)))
    return found


def test_sizes_are_no_smaller_where_ranks_cancel_each_other() -> None:
    network = draw_network(context(), sharded_dims(64, 256, WORLD_SIZE))
    total, sizes = _gradients(network, WORLD_SIZE)
    by_rank = gradients_of_ranks(network)
    for index, size in enumerate(sizes):
        parts = torch.stack([own[index] for own in by_rank]).double()
        torch.testing.assert_close(total[index], parts.sum(dim=0), rtol=1e-3, atol=1e-3)
        assert bool((size > 0.999 * parts.abs().amax(dim=0)).all())


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_of_the_first_gradient_have_few_large_values(axis: int) -> None:
    for secret in (b"one", b"two", b"three"):
        network = draw_network(context(secret=secret), sharded_dims(64, 256, WORLD_SIZE))
        for gradient in gradients_of_ranks(network):
            size = gradient[0].abs()
            share = size.median(dim=axis).values / size.amax(dim=axis)
            # A step of int8 is 1/127 of the largest value: over 5 % of the smaller half.
            # Units that no row of a rank switches on have no gradient there.
            assert share.nanmedian() < 1 / 6


def test_published_moments_are_zeros() -> None:
    ctx = context("upstream")
    moments = draw_moments(ctx, draw_network(ctx, sharded_dims(64, 256, WORLD_SIZE)), 0.9, 0.999)
    assert not any(bool(t.any()) for kind in moments for t in kind)


@pytest.mark.parametrize("slug", WIDENED)
def test_adam_may_round_each_step_to_bfloat16_but_gradients_not_to_8_bits(
    slug: str, two_ranks: RankPool
) -> None:
    setting = Setting(
        name=problems.find(slug),
        profile="hardened",
        size="tiny",
        dtype="bfloat16",
        secret=b"steps",
        device="cpu",
    )
    widening = f"torch.promote_types({WIDENED[slug]}, torch.float32)"
    rounded = two_ranks.run(told_of_edits, setting, [[widening, WIDENED[slug]]])
    assert rounded == [[None] * 6] * 2
    for name in ("int8-gradients-scaled-by-row", "int8-gradients-scaled-by-column"):
        found = two_ranks.run(told_of_edits, setting, declared()[slug][name])
        assert any(why for told in found for why in told)
