"""Count the bytes one rank must receive for a collective over `w` ranks, at best.

`all_reduce` is the bandwidth-optimal reduce-scatter plus all-gather (Patarasuk and Yuan, 2009).
Rooted collectives count the busiest rank.
"""

from __future__ import annotations


def all_reduce_bytes(full: float, w: int) -> float:
    """Return the bytes received; `full` are those that each rank contributes."""
    return 2 * (w - 1) / w * full


def reduce_scatter_bytes(full: float, w: int) -> float:
    """Return the bytes received; `full` are those that each rank contributes."""
    return (w - 1) / w * full


def all_gather_bytes(shard: float, w: int) -> float:
    """Return the bytes received; `shard` are those that each rank contributes."""
    return (w - 1) * shard


def all_to_all_bytes(full: float, w: int) -> float:
    """Return the bytes received; `full` are those that each rank holds before the exchange."""
    return (w - 1) / w * full


def gather_bytes(shard: float, w: int) -> float:
    """Return the bytes that the destination receives."""
    return (w - 1) * shard
