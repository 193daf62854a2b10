"""Count the bytes that the busiest rank must send or receive for a collective over `w` ranks.

`all_reduce` is the bandwidth-optimal reduce-scatter plus all-gather (Patarasuk and Yuan, 2009).
"""

from __future__ import annotations


def all_reduce_bytes(full: float, w: int) -> float:
    """Return the bytes of each rank; `full` are those that each rank contributes."""
    return 2 * (w - 1) / w * full


def reduce_scatter_bytes(full: float, w: int) -> float:
    """Return the bytes of each rank; `full` are those that each rank contributes."""
    return (w - 1) / w * full


def all_gather_bytes(shard: float, w: int) -> float:
    """Return the bytes of each rank; `shard` are those that each rank contributes."""
    return (w - 1) * shard


def all_to_all_bytes(full: float, w: int) -> float:
    """Return the bytes of each rank; `full` are those that each rank holds before the exchange."""
    return (w - 1) / w * full


def gather_bytes(shard: float, w: int) -> float:
    """Return the bytes that the destination receives."""
    return (w - 1) * shard


def scatter_bytes(part: float, w: int) -> float:
    """Return the bytes that the source sends; each rank gets a part of its own."""
    return (w - 1) * part
