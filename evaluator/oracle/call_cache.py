"""Keeps what an oracle's rank knows of the calls that it has made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from evaluator.buffers.slab import GUARD_BYTES, Region, SlotLayout
from problems.running.calls import Outputs
from problems.values import tensors


@dataclass(kw_only=True)
class Call:
    """Holds one call's private truth: its inputs, and the expected outputs and mutated arguments.

    `names` are the outputs' and then the mutated arguments', as `truth` holds them; `keys` is what
    the problem needs to know of answers that are as good as the truth. Under `upstream` the truth
    is what the reference returns, and `exact` are the answers in float64.
    """

    inputs: dict[str, object]
    names: tuple[str, ...]
    truth: Outputs
    keys: Outputs
    exact: Outputs = ()
    layout: SlotLayout | None = None

    @property
    def outputs(self) -> tuple[Region, ...]:
        """Return where its outputs belong."""
        assert self.layout is not None
        return self.layout.outputs

    @property
    def committed(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges that a right call writes."""
        assert self.layout is not None
        return (place.range for place in self.layout.answers)

    def placed(self) -> Iterator[tuple[str, Region, Tensor]]:
        """Yield each tensor of its inputs: the argument's name, where it lies, and the tensor."""
        assert self.layout is not None
        places = iter(self.layout.inputs)
        for name, value in self.inputs.items():
            for tensor in tensors(value):
                yield name, next(places), tensor

    def overwritten(self, snapshot: Tensor, mutates: tuple[str, ...]) -> Iterator[str]:
        """Yield the names of inputs that must not change and did."""
        for name, place, tensor in self.placed():
            if name not in mutates and not torch.equal(place.region(snapshot), as_bytes(tensor)):
                yield name

    def answers(self, mutates: tuple[str, ...]) -> list[tuple[Region, Tensor]]:
        """Return where a right call leaves what: outputs, then arguments that it changes."""
        assert self.layout is not None
        placed = list(self.placed())
        changed = [place for wanted in mutates for name, place, _ in placed if name == wanted]
        return list(zip((*self.outputs, *changed), self.truth, strict=True))


def as_bytes(value: Tensor) -> Tensor:
    """Return a tensor's bytes: uint8, [nbytes]."""
    return value.contiguous().view(-1).view(torch.uint8)


@dataclass(kw_only=True)
class CallCache:
    """Holds calls laid out together in a slab: one of a correctness trial, or those of a timed
    batch."""

    calls: list[Call]
    guards: list[tuple[int, int]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    nbytes: int = 0
    filled_sides: set[str] = field(default_factory=set)

    def ranges(self, called: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield from where to where in a slab these calls lie, with the guard bands around them, in
        order and none twice."""
        ends = [*self.starts[1:], self.nbytes]
        last = 0
        for index in sorted(called):
            end = min(ends[index] + GUARD_BYTES, self.nbytes)
            yield max(last, self.starts[index]), end
            last = end

    def bands(self, called: Iterable[int]) -> Iterator[tuple[int, int, int]]:
        """Yield the parts of guard bands in these ranges: from where to where, and how far behind
        the start of the band."""
        ranges = list(self.ranges(called))
        for start, end in self.guards:
            for first, last in ranges:
                if max(start, first) < min(end, last):
                    yield max(start, first), min(end, last), max(start, first) - start
