"""Substitute collectives that lie, and honest ones that round otherwise, for the screen.

References look `torch.distributed`'s functions up when called, so replacing them there is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor
from torch.overrides import TorchFunctionMode

Group = dist.ProcessGroup | None
SUM = dist.ReduceOp.SUM


@contextmanager
def local_only() -> Iterator[None]:
    """Let every collective copy what this rank has, while nothing is sent."""
    silent: dict[str, Any] = dict.fromkeys(("all_reduce", "broadcast", "reduce"), _keep)
    with patch.multiple(
        dist,
        **silent,
        all_gather_into_tensor=_local_all_gather,
        reduce_scatter_tensor=_local_reduce_scatter,
        all_to_all_single=_local_all_to_all,
        scatter=_local_scatter,
        gather=_local_gather,
        batch_isend_irecv=_local_exchange,
    ):
        yield


@contextmanager
def reversed_reduction() -> Iterator[None]:
    """Let sums over ranks go from the last rank to the first, rounded to the dtype at each step."""
    all_gather, all_reduce, reduce = dist.all_gather_into_tensor, dist.all_reduce, dist.reduce

    def total(tensor: Tensor, group: Group) -> Tensor:
        world = dist.get_world_size(group)
        parts = tensor.new_empty(world * tensor.numel())
        all_gather(parts, tensor.contiguous().view(-1), group=group)
        rows = parts.view(world, -1)
        running = rows[-1]
        for rank in range(world - 2, -1, -1):
            running = running + rows[rank]
        return running.view_as(tensor)

    def ordered_all_reduce(tensor: Tensor, op: Any = SUM, group: Group = None) -> None:
        if op != SUM:
            all_reduce(tensor, op, group)
            return
        tensor.copy_(total(tensor, group))

    def ordered_reduce_scatter(
        output: Tensor, tensor: Tensor, op: Any = SUM, group: Group = None
    ) -> None:
        whole = total(tensor, group).view(dist.get_world_size(group), -1)
        output.copy_(whole[dist.get_rank(group)].view_as(output))

    def ordered_reduce(tensor: Tensor, dst: int, op: Any = SUM, group: Group = None) -> None:
        if op != SUM:
            reduce(tensor, dst, op, group)
            return
        tensor.copy_(total(tensor, group))

    with patch.multiple(
        dist,
        all_reduce=ordered_all_reduce,
        reduce_scatter_tensor=ordered_reduce_scatter,
        reduce=ordered_reduce,
    ):
        yield


class SplitProducts(TorchFunctionMode):
    """Split matrix products into four parts of the inner dimension, each rounded to the dtype, and
    full sums into four, as split-K kernels and tiles do."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in (Tensor.__matmul__, Tensor.matmul, torch.matmul):
            left, right = args
            parts = zip(left.chunk(4, dim=-1), right.chunk(4, dim=-2), strict=True)
            return sum(func(a, b) for a, b in parts)
        if func is torch.nn.functional.linear:
            left, weight, *bias = args
            parts = zip(left.chunk(4, dim=-1), weight.chunk(4, dim=-1), strict=True)
            whole = sum(func(a, b) for a, b in parts)
            added = bias[0] if bias else (kwargs or {}).get("bias")
            return whole if added is None else whole + added
        if func is Tensor.sum and len(args) == 1 and not kwargs:
            return sum(func(part) for part in args[0].flatten().chunk(4))
        return func(*args, **(kwargs or {}))


KEPT_MANTISSA_BITS = {torch.float64: 23, torch.float32: 7, torch.bfloat16: 3, torch.float16: 3}
_MANTISSA_BITS = {torch.float64: 52, torch.float32: 23, torch.bfloat16: 7, torch.float16: 10}
_SAME_SIZE = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def truncated(value: Tensor) -> Tensor:
    """Return a copy cut to the mantissa of the next smaller format: bfloat16's of float32, float8
    e4m3's of 16 bits. Integers and formats without a smaller one stay."""
    if value.is_complex():
        return torch.view_as_complex(truncated(torch.view_as_real(value)))
    if value.dtype not in KEPT_MANTISSA_BITS:
        return value.clone()
    cut = _MANTISSA_BITS[value.dtype] - KEPT_MANTISSA_BITS[value.dtype]
    copy = value.clone(memory_format=torch.contiguous_format)
    copy.view(_SAME_SIZE[value.dtype.itemsize]).bitwise_right_shift_(cut).bitwise_left_shift_(cut)
    return copy


def _keep(tensor: Tensor, *_: object, **__: object) -> None:
    """Keep this rank's own values where the result is expected."""


def _local_all_gather(output: Tensor, tensor: Tensor, group: Group = None) -> None:
    world = dist.get_world_size(group)
    output.view(world, -1).copy_(tensor.reshape(1, -1).expand(world, -1))


def _local_reduce_scatter(output: Tensor, tensor: Tensor, group: Group = None) -> None:
    own = tensor.view(dist.get_world_size(group), -1)[dist.get_rank(group)]
    output.copy_(own.view_as(output))


def _local_all_to_all(output: Tensor, tensor: Tensor, *_: object, **__: object) -> None:
    """Copy as much of what would be sent as there is room for, and zeros after it."""
    own = tensor.reshape(-1)[: output.numel()]
    output.copy_(torch.cat([own, own.new_zeros(output.numel() - len(own))]).view(output.shape))


def _local_scatter(output: Tensor, parts: Sequence[Tensor] | None, **_: object) -> None:
    output.zero_()
    if parts is not None:
        output.copy_(parts[dist.get_rank()])


def _local_gather(tensor: Tensor, parts: Sequence[Tensor] | None = None, **_: object) -> None:
    for part in parts or ():
        part.copy_(tensor)


def _local_exchange(operations: Sequence[dist.P2POp]) -> list[dist.Work]:
    """Hand what this rank sends to itself, in order; zeros where it sends nothing."""
    sent = [operation.tensor for operation in operations if operation.op is dist.isend]
    received = [operation.tensor for operation in operations if operation.op is dist.irecv]
    for to, source in zip_longest(received, sent):
        if to is not None and source is not None and to.shape == source.shape:
            to.copy_(source)
        elif to is not None:
            to.zero_()
    return []
