"""Substitute collectives that leave out part of what ranks send each other, for the screen.

All of them exchange as much as the real ones, in the same order, so that no rank waits in vain, and
then forget some of it. As in `substitutes`, replacing the functions of torch.distributed is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from problems.audit.substitutes import SUM, Group

Splits = Sequence[int] | None
MAX = dist.ReduceOp.MAX
REAL = {
    name: getattr(dist, name)
    for name in (
        *("all_reduce", "reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor"),
        *("all_to_all_single", "scatter", "gather", "batch_isend_irecv"),
    )
}


_forgotten: set[int] = set()  # ranks, since `neighbour_only` began


@contextmanager
def neighbour_only() -> Iterator[set[int]]:
    """Let every rank take all others for copies of the next one, and what comes round a ring for
    what came first. Numbers of elements are told as they are. Yield the ranks of which anything
    has been forgotten so far: none where all groups are of two."""
    seen: dict[tuple[object, ...], Tensor] = {}
    _forgotten.clear()

    def ring(operations: Sequence[dist.P2POp]) -> list[dist.Work]:
        for request in REAL["batch_isend_irecv"](operations):
            request.wait()
        received = [one for one in operations if one.op is dist.irecv]
        for index, one in enumerate(received):
            place = (one.peer, index, one.tensor.shape)
            if place in seen:
                _forgotten.add(one.peer)
            one.tensor.copy_(seen.setdefault(place, one.tensor.clone()))
        return []

    with patch.multiple(
        dist,
        all_reduce=_all_reduce,
        reduce=_reduce,
        broadcast=_broadcast,
        all_gather_into_tensor=_all_gather,
        reduce_scatter_tensor=_reduce_scatter,
        all_to_all_single=_all_to_all,
        scatter=_scatter,
        gather=_gather,
        batch_isend_irecv=ring,
    ):
        yield _forgotten


@contextmanager
def without_last_element() -> Iterator[None]:
    """Let the last number of whatever a rank sends be zero, where it sends more than one."""
    kept: list[Tensor] = []  # what is being sent must live until it has been

    def cut(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point() or tensor.numel() < 2:
            return tensor
        kept.append(tensor.clone(memory_format=torch.contiguous_format))
        kept[-1].view(-1)[-1] = 0
        return kept[-1]

    def in_place(name: str) -> Callable[..., Any]:
        return lambda tensor, *args, **kwargs: REAL[name](
            tensor.copy_(cut(tensor)), *args, **kwargs
        )

    def broadcast(tensor: Tensor, src: int = 0, group: Group = None) -> Any:
        return REAL["broadcast"](cut(tensor) if dist.get_rank() == src else tensor, src, group)

    def gather(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        return REAL["gather"](cut(tensor), *args, **kwargs)

    def to_output(name: str) -> Callable[..., Any]:
        def send(output: Tensor, sent: Any, *args: Any, **kwargs: Any) -> Any:
            less = [cut(part) for part in sent] if isinstance(sent, list) else cut(sent)
            return REAL[name](output, less, *args, **kwargs)

        return send

    substitutes: dict[str, Any] = {name: in_place(name) for name in ("all_reduce", "reduce")}
    substitutes |= {name: to_output(name) for name in ("scatter", *_TO_OUTPUT)}
    with patch.multiple(dist, broadcast=broadcast, gather=gather, **substitutes):
        yield


@contextmanager
def counts_changed(change: Callable[[Tensor], object]) -> Iterator[None]:
    """Change what collectives tell of numbers of elements, in place."""

    def substitute(name: str) -> Callable[..., Any]:
        def told(output: Tensor, *args: Any, **kwargs: Any) -> Any:
            work = REAL[name](output, *args, **kwargs)
            if _counts(output):
                change(output)
            return work

        return told

    substitutes: dict[str, Any] = {n: substitute(n) for n in ("all_reduce", *_TO_OUTPUT)}
    with patch.multiple(dist, **substitutes):
        yield


_TO_OUTPUT = ("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single")


def _counts(tensor: Tensor) -> bool:
    return tensor.dtype in (torch.int32, torch.int64)


def _taken_for(group: Group) -> list[int]:
    """Return whose data this rank takes for each rank's: its own, and the next rank's."""
    me, world = dist.get_rank(group), dist.get_world_size(group)
    heard = (me, (me + 1) % world)
    _forgotten.update(set(range(world)) - set(heard))
    return [me if rank == me else heard[1] for rank in range(world)]


def _rows(tensor: Tensor, group: Group) -> Tensor:
    """Return the tensors of all ranks, a flat row each, as this rank takes them to be."""
    world = dist.get_world_size(group)
    every = tensor.new_empty(world * tensor.numel())
    REAL["all_gather_into_tensor"](every, tensor.contiguous().view(-1), group=group)
    rows = every.view(world, -1)
    return rows if _counts(tensor) else rows[_taken_for(group)]


def _all_reduce(tensor: Tensor, op: Any = SUM, group: Group = None) -> None:
    rows = _rows(tensor, group)
    tensor.copy_((rows.amax(dim=0) if op == MAX else rows.sum(dim=0)).view_as(tensor))


def _reduce(tensor: Tensor, dst: int, op: Any = SUM, group: Group = None) -> None:
    total = tensor.clone()
    _all_reduce(total, op, group)
    if dist.get_rank() == dst:
        tensor.copy_(total)


def _broadcast(tensor: Tensor, src: int = 0, group: Group = None) -> None:
    place = dist.get_process_group_ranks(group).index(src)
    tensor.copy_(_rows(tensor, group)[place].view_as(tensor))


def _all_gather(output: Tensor, tensor: Tensor, group: Group = None) -> None:
    output.view(-1).copy_(_rows(tensor, group).view(-1))


def _reduce_scatter(output: Tensor, tensor: Tensor, op: Any = SUM, group: Group = None) -> None:
    whole = _rows(tensor, group).sum(dim=0).view(dist.get_world_size(group), -1)
    output.copy_(whole[dist.get_rank(group)].view_as(output))


def _all_to_all(
    output: Tensor,
    tensor: Tensor,
    output_split_sizes: Splits = None,
    input_split_sizes: Splits = None,
    group: Group = None,
    **options: Any,
) -> None:
    """Return no work to wait for, though the reference may have asked for one."""
    splits = (output_split_sizes, input_split_sizes)
    REAL["all_to_all_single"](output, tensor, *splits, group=group)
    if not _counts(output):
        world = dist.get_world_size(group)
        parts = torch.split(output, list(output_split_sizes or [len(output) // world] * world))
        _take(parts, group)


def _scatter(tensor: Tensor, parts: Any = None, src: int = 0) -> None:
    REAL["scatter"](tensor, parts, src)
    if _taken_for(None)[src] != src:
        tensor.zero_()


def _gather(tensor: Tensor, parts: Any = None, dst: int = 0, group: Group = None) -> None:
    REAL["gather"](tensor, parts, dst, group)
    if parts and not _counts(tensor):
        _take(parts, group)


def _take(parts: Sequence[Tensor], group: Group) -> None:
    """Replace what came from a rank by what it is taken for, or zeros where the shapes differ."""
    taken = [parts[rank].clone() for rank in _taken_for(group)]
    for part, source in zip(parts, taken, strict=True):
        part.copy_(source if part.shape == source.shape else torch.zeros_like(part))
