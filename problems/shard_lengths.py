"""Draw lengths of shards that no rank can guess: uneven ones, empty ones, and every remainder."""

from __future__ import annotations

from collections.abc import Sequence

from problems.context import RankContext


def shard_lengths(ctx: RankContext, published: Sequence[int], usual: int) -> list[int]:
    """Return the published lengths (upstream), or lengths around `usual` (hardened).

    In every third trial shards are half as long or have 16 elements, and one has one or none.
    Totals divided by the number of ranks leave every remainder by turns.
    """
    world = ctx.world_size
    alike = ctx.ragged(published, range(usual, usual + 7))
    few, fewer = (ctx.ragged(published, (16, usual // 2)) for _ in range(2))
    poor = ctx.choose(0, range(world))
    few[poor], fewer[poor] = 1, 0
    lengths = ctx.choose(alike, (alike, few, alike, alike, fewer, alike))
    rest = ctx.choose(sum(lengths) % world, range(world))
    lengths[(poor + 1) % world] += (rest - sum(lengths)) % world
    return lengths
