"""Bytes one rank must receive for a collective over `w` ranks, with an ideal algorithm.

`all_reduce` is the bandwidth-optimal reduce-scatter plus all-gather (Patarasuk and Yuan, 2009).
Rooted collectives count the busiest rank.
"""

from __future__ import annotations


def all_reduce_bytes(full: float, w: int) -> float:
    return 2 * (w - 1) / w * full


def reduce_scatter_bytes(full: float, w: int) -> float:
    """`full` is what each rank contributes."""
    return (w - 1) / w * full


def all_gather_bytes(shard: float, w: int) -> float:
    """`shard` is what each rank contributes."""
    return (w - 1) * shard


def all_to_all_bytes(full: float, w: int) -> float:
    """`full` is what each rank holds before the exchange."""
    return (w - 1) / w * full


def gather_bytes(shard: float, w: int) -> float:
    """Received by the destination."""
    return (w - 1) * shard
