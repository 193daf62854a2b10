"""Collectives that lie, and honest ones that round in another order. For the screen only.

References look `torch.distributed`'s functions up when called, so replacing them there is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor
from torch.overrides import TorchFunctionMode

Group = dist.ProcessGroup | None


@contextmanager
def local_only() -> Iterator[None]:
    """Every collective copies what this rank has, and nothing is sent."""
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
    """Sums over ranks go from the last rank to the first, and round to the dtype at each step."""
    all_gather = dist.all_gather_into_tensor

    def total(tensor: Tensor, group: Group) -> Tensor:
        world = dist.get_world_size(group)
        parts = tensor.new_empty(world * tensor.numel())
        all_gather(parts, tensor.contiguous().view(-1), group=group)
        rows = parts.view(world, -1)
        running = rows[-1]
        for rank in range(world - 2, -1, -1):
            running = running + rows[rank]
        return running.view_as(tensor)

    def all_reduce(tensor: Tensor, group: Group = None) -> None:
        tensor.copy_(total(tensor, group))

    def reduce_scatter_tensor(output: Tensor, tensor: Tensor, group: Group = None) -> None:
        whole = total(tensor, group).view(dist.get_world_size(group), -1)
        output.copy_(whole[dist.get_rank(group)].view_as(output))

    def reduce(tensor: Tensor, dst: int, group: Group = None) -> None:
        tensor.copy_(total(tensor, group))

    with patch.multiple(
        dist, all_reduce=all_reduce, reduce_scatter_tensor=reduce_scatter_tensor, reduce=reduce
    ):
        yield


class SplitProducts(TorchFunctionMode):
    """Matrix products in four parts of the inner dimension, each rounded to the dtype, and full
    sums in four parts: what split-K kernels and tiles do."""

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
        if func is Tensor.sum and len(args) == 1 and not kwargs:
            return sum(func(part) for part in args[0].flatten().chunk(4))
        return func(*args, **(kwargs or {}))


def _keep(tensor: Tensor, *_: object, **__: object) -> None:
    """This rank's own values stay where the result is expected."""


def _local_all_gather(output: Tensor, tensor: Tensor, group: Group = None) -> None:
    world = dist.get_world_size(group)
    output.view(world, -1).copy_(tensor.reshape(1, -1).expand(world, -1))


def _local_reduce_scatter(output: Tensor, tensor: Tensor, group: Group = None) -> None:
    own = tensor.view(dist.get_world_size(group), -1)[dist.get_rank(group)]
    output.copy_(own.view_as(output))


def _local_all_to_all(output: Tensor, tensor: Tensor, *_: object, group: Group = None) -> None:
    output.copy_(tensor.view_as(output))


def _local_scatter(output: Tensor, parts: Sequence[Tensor] | None, **_: object) -> None:
    output.zero_()
    if parts is not None:
        output.copy_(parts[dist.get_rank()])


def _local_gather(tensor: Tensor, parts: Sequence[Tensor] | None = None, **_: object) -> None:
    for part in parts or ():
        part.copy_(tensor)


def _local_exchange(operations: Sequence[dist.P2POp]) -> list[dist.Work]:
    sent = [operation.tensor for operation in operations if operation.op is dist.isend]
    received = [operation.tensor for operation in operations if operation.op is dist.irecv]
    for to, source in zip(received, sent, strict=True):
        to.copy_(source)
    return []
