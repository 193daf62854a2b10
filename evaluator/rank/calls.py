"""Holds the calls of a rank: their arguments as views on the slab, and where answers belong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.distributed as dist

from evaluator.buffers.memory import Memory
from evaluator.buffers.sealing import Ranges
from evaluator.rank.failure_claim import CallFault
from problems.values import linear, named_outputs, sparse, tensors

Solution = Callable[..., object]
Groups = Mapping[str, dist.ProcessGroup]


@dataclass(frozen=True, kw_only=True)
class Work:
    """Holds what this rank calls, its groups, and what the problem's outputs are called."""

    solution: Solution
    groups: Groups
    names: tuple[str, ...]


class Slot:
    """Holds the arguments of one call and the places of its outputs, as views on the slab. `sealed`
    and `committed` are the ranges of its inputs, and of all that a right call writes."""

    def __init__(self, slab: Memory, work: Work, node: dict[str, Any]) -> None:
        self.outputs = [_view(slab, item) for item in node["outputs"]]
        self.sealed: Ranges = [tuple(own) for own in node["sealed"]]
        self.committed: Ranges = [tuple(own) for own in node["committed"]]
        self.solution = work.solution
        self._arguments = [_argument(slab, work.groups, item) for item in node["arguments"]]
        self._has_lists = any(isinstance(argument, list) for argument in self._arguments)
        self._names = work.names
        self._changed = [(i, tensors(self._arguments[i])) for i in node["changed"]]

    def call(self) -> None:
        """Make the call, and copy what it returned and replaced; raises CallFault."""
        given = self._given()
        self._store(self.solution(*given), given)

    def skip(self) -> None:
        """Do as much without the solution: copy other tensors of the outputs' kinds."""
        self._given()
        for output in self.outputs:
            output.copy_(_blank(output.shape, output.dtype, output.device))

    def _store(self, result: object, given: list[object]) -> None:
        """Copy what a call returned and replaced to where it belongs; raises CallFault."""
        for place, (name, tensor) in zip(self.outputs, self._returned(result), strict=True):
            _fill(name, place, tensor)
        for position, views in self._changed:
            for view, now in zip(views, tensors(given[position]), strict=True):
                if now is not view:  # an entry of a list may be replaced instead of written to
                    _fill("changed argument", view, now)

    def _given(self) -> list[object]:
        """Return the arguments of the next call; a list that one empties is whole for the one
        after."""
        if not self._has_lists:
            return self._arguments
        return [list(a) if isinstance(a, list) else a for a in self._arguments]

    def _returned(self, result: object) -> list[tuple[str, torch.Tensor]]:
        try:
            returned = named_outputs(self._names, result)
        except TypeError as error:
            raise CallFault("runtime_error", "output_type", str(error)) from None
        except ValueError as error:
            raise CallFault("shape_mismatch", "output_count", str(error)) from None
        if len(returned) != len(self.outputs):
            raise CallFault(
                "shape_mismatch",
                "output_count",
                f"{len(returned)} tensors returned, {len(self.outputs)} expected",
            )
        return returned


@cache
def _blank(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return zeros, as if a call had returned them; the same ones each time."""
    return torch.zeros(shape, dtype=dtype, device=device)


def _fill(name: str, place: torch.Tensor, tensor: torch.Tensor) -> None:
    if tensor.shape != place.shape:
        raise CallFault(
            "shape_mismatch",
            "output_shape",
            f"{name} has shape {tuple(tensor.shape)}, {tuple(place.shape)} expected",
        )
    if tensor.dtype != place.dtype:
        raise CallFault(
            "dtype_mismatch", "output_dtype", f"{name} is {tensor.dtype}, {place.dtype} expected"
        )
    place.copy_(tensor)


def _argument(slab: Memory, groups: Groups, node: dict[str, Any]) -> object:
    def built(nodes: list[dict[str, Any]]) -> list[Any]:
        return [_argument(slab, groups, item) for item in nodes]

    match node:
        case {"tensor": place}:
            return _view(slab, place)
        case {"items": items, "tuple": is_tuple}:
            return tuple(built(items)) if is_tuple else built(items)
        case {"linear": [weight, *bias]}:
            return linear(_view(slab, weight["tensor"]), *(built(bias) or [None]))
        case {"sparse": parts, "shape": shape}:
            indices, values = built(parts)
            return sparse(indices, values, shape)
        case {"size": lengths}:
            return torch.Size(lengths)
        case {"group": axis}:
            return groups[axis]
    return node["value"]


def _view(slab: Memory, place: dict[str, Any]) -> torch.Tensor:
    return slab.tensor(place["offset"], tuple(place["shape"]), getattr(torch, place["dtype"]))
