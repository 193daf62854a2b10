"""Put collectives in place whose wires carry fewer bits than the values have, for the screen.

Each block of values is sent as small numbers and one scale. What a rank keeps for itself stays
exact and sums are taken in float64, so nothing but the wire is coarse.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import pad

from problems.audit.substitutes import SUM, Group

BLOCK = 32
BLOCKS = (BLOCK, 128, None)  # None: a whole tensor shares one scale
FP8_MAX = 448.0  # of float8 e4m3


@dataclass(frozen=True, kw_only=True)
class Code:
    """Say in how many bits a value travels, and what blocks of values are on arrival. A block has
    so many values, or None for all of a tensor."""

    bits: int
    apply: Callable[[Tensor], Tensor]
    block: int | None = BLOCK


def _as_integers(blocks: Tensor, largest: int) -> Tensor:
    step = _step(blocks, largest)
    return (blocks / step).round() * step


def _as_fp8(blocks: Tensor) -> Tensor:
    step = _step(blocks, FP8_MAX)
    return (blocks / step).to(torch.float8_e4m3fn).to(blocks.dtype) * step


def _step(blocks: Tensor, largest: float) -> Tensor:
    """Return what 1 is worth in each row, its largest value being sent as `largest`."""
    steps = blocks.abs().nan_to_num(posinf=0.0).amax(dim=-1, keepdim=True) / largest
    return torch.where(steps == 0, 1.0, steps)


INT8 = Code(bits=8, apply=partial(_as_integers, largest=127))
FP8 = Code(bits=8, apply=_as_fp8)
INT16 = Code(bits=16, apply=partial(_as_integers, largest=32767))


def sent(values: Tensor, code: Code) -> Tensor:
    """Return a copy as it arrives: floats of more bits coded, all else as it is. So are at most 32
    values, where coding would save next to nothing."""
    if values.is_complex():
        return torch.view_as_complex(sent(torch.view_as_real(values), code))
    is_coded = values.is_floating_point() and 8 * values.dtype.itemsize > code.bits
    if not is_coded or values.numel() <= BLOCK:
        return values.clone(memory_format=torch.contiguous_format)
    flat = values.detach().reshape(-1).double()
    block = code.block or len(flat)
    blocks = pad(flat, (0, -len(flat) % block)).view(-1, block)
    coded = torch.where(blocks.isfinite(), code.apply(blocks), blocks)
    return coded.view(-1)[: len(flat)].view(values.shape).to(values.dtype)


@contextmanager
def coarse(code: Code, line: int | None = None) -> Iterator[Wire]:
    """Let every collective send floats through the code, or only those called from one line of
    their file; the wire tells whose values that changed."""
    wire = Wire(code=code, only=line)
    names = ("all_reduce", "reduce", "broadcast", "scatter", "gather", "batch_isend_irecv")
    flat = ("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single")
    collectives: dict[str, Any] = {name: wire.called(name) for name in names + flat}
    with patch.multiple(dist, **collectives):
        yield wire


# What the wires themselves are made of.
_all_gather, _all_to_all = dist.all_gather_into_tensor, dist.all_to_all_single
_all_reduce, _reduce, _broadcast = dist.all_reduce, dist.reduce, dist.broadcast
_scatter, _gather, _exchange = dist.scatter, dist.gather, dist.batch_isend_irecv


@dataclass(kw_only=True)
class Wire:
    """Do what torch.distributed's functions do, over a wire with this code. `lossy` has the lines
    from which something was sent that did not arrive as it was. With `only`, other lines send
    exact values."""

    code: Code
    only: int | None = None
    lossy: set[int] = field(default_factory=set)
    _line: int = 0

    def called(self, name: str) -> Callable[..., Any]:
        """Return the collective of that name, which remembers the line that calls it."""

        def collective(*args: Any, **kwargs: Any) -> Any:
            self._line = sys._getframe(1).f_lineno
            return getattr(self, name)(*args, **kwargs)

        return collective

    def _sent(self, values: Tensor) -> Tensor:
        if self.only not in {None, self._line}:
            return values.clone(memory_format=torch.contiguous_format)
        arriving = sent(values, self.code)
        if not torch.equal(arriving, values):
            self.lossy.add(self._line)
        return arriving

    def all_gather_into_tensor(self, output: Tensor, tensor: Tensor, group: Group = None) -> None:
        _all_gather(output, self._sent(tensor), group=group)
        own = output.view(dist.get_world_size(group), -1)[dist.get_rank(group)]
        own.copy_(tensor.reshape(-1))

    def all_to_all_single(
        self,
        output: Tensor,
        tensor: Tensor,
        output_split_sizes: Sequence[int] | None = None,
        input_split_sizes: Sequence[int] | None = None,
        group: Group = None,
        async_op: bool = False,
    ) -> Any:
        world, rank = dist.get_world_size(group), dist.get_rank(group)
        to = list(input_split_sizes or [len(tensor) // world] * world)
        come = list(output_split_sizes or [len(output) // world] * world)
        parts = tensor.split_with_sizes(to)
        _all_to_all(output, torch.cat([self._sent(part) for part in parts]), come, to, group=group)
        own = output.split_with_sizes(come)[rank]
        own.copy_(parts[rank].reshape(own.shape))
        return _Done() if async_op else None

    def all_reduce(self, tensor: Tensor, op: Any = SUM, group: Group = None) -> None:
        if op != SUM:
            _all_reduce(tensor, op, group)
            return
        tensor.copy_(self._total(tensor, group))

    def reduce(self, tensor: Tensor, dst: int, op: Any = SUM, group: Group = None) -> None:
        if op != SUM:
            _reduce(tensor, dst, op, group)
            return
        tensor.copy_(self._total(tensor, group))

    def _total(self, tensor: Tensor, group: Group) -> Tensor:
        world = dist.get_world_size(group)
        wide = _wide(tensor).reshape(-1)
        parts = wide.new_empty(world, wide.numel())
        self.all_gather_into_tensor(parts.view(-1), wide, group=group)
        return parts.sum(0).view_as(tensor)

    def reduce_scatter_tensor(
        self, output: Tensor, tensor: Tensor, op: Any = SUM, group: Group = None
    ) -> None:
        if op != SUM:
            raise ValueError(f"no wire for {op}")
        wide = _wide(tensor).reshape(dist.get_world_size(group), -1)
        parts = torch.empty_like(wide)
        self.all_to_all_single(parts, wide, group=group)
        output.copy_(parts.sum(0).view_as(output))

    def broadcast(self, tensor: Tensor, src: int, group: Group = None) -> None:
        arriving = self._sent(tensor)
        _broadcast(arriving, src=src, group=group)
        if dist.get_rank() != src:
            tensor.copy_(arriving)

    def scatter(self, output: Tensor, parts: list[Tensor] | None, src: int) -> None:
        coded = [self._sent(part) for part in parts] if parts is not None else None
        _scatter(output, coded, src=src)
        if parts is not None:
            output.copy_(parts[dist.get_rank()])

    def gather(
        self,
        tensor: Tensor,
        parts: list[Tensor] | None = None,
        dst: int = 0,
        group: Group = None,
    ) -> None:
        _gather(self._sent(tensor), parts, dst=dst, group=group)
        if parts is not None:
            parts[dist.get_rank(group)].copy_(tensor)

    def batch_isend_irecv(self, operations: Sequence[dist.P2POp]) -> list[dist.Work]:
        coded = [self._coded(one) if one.op is dist.isend else one for one in operations]
        return _exchange(coded)

    def _coded(self, one: dist.P2POp) -> dist.P2POp:
        return dist.P2POp(one.op, self._sent(one.tensor), one.peer, one.group)


def _wide(values: Tensor) -> Tensor:
    if values.is_complex():
        return values.to(torch.complex128)
    return values.double() if values.is_floating_point() else values


class _Done:
    """Stand for work that is over already."""

    def wait(self) -> None:
        """Return at once."""
