"""Lays out a call's tensors in a rank's slab: regions between guard bands, described by a plan.

Pure layout, no memory: the oracle's ranks use it, and a submission's ranks read it as a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from problems.spec import GroupRef
from problems.values import tensors

GUARD_BYTES = 64 << 10
ALIGNMENT = 256

Plan = dict[str, Any]  # JSON for a rank: where calls lie in its slab


@dataclass(frozen=True, kw_only=True)
class Region:
    """Holds a tensor's region: `offset` in bytes from the start of the slab."""

    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        """Return the region's length in bytes."""
        return self.dtype.itemsize * torch.Size(self.shape).numel()

    @property
    def range(self) -> tuple[int, int]:
        """Return where the region begins in the slab, and its length in bytes."""
        return self.offset, self.nbytes

    def region(self, slab: torch.Tensor) -> torch.Tensor:
        """Return its own of a slab's bytes: uint8, [nbytes]."""
        return slab[self.offset : self.offset + self.nbytes]

    def on(self, slab: torch.Tensor) -> torch.Tensor:
        """Return the tensor, a view on a slab's bytes."""
        return self.region(slab).view(self.dtype).view(self.shape)

    def node(self) -> dict[str, Any]:
        """Return the JSON that a rank finds the tensor by."""
        return {
            "offset": self.offset,
            "shape": list(self.shape),
            "dtype": str(self.dtype).removeprefix("torch."),
        }


@dataclass(frozen=True, kw_only=True)
class SlotLayout:
    """Holds one call's places: its input tensors in argument order, and its outputs. Arguments that
    a call changes are named by position: what replaces them there is copied back. `answers` are the
    outputs, then the places of these arguments."""

    inputs: tuple[Region, ...]
    outputs: tuple[Region, ...]
    arguments: tuple[dict[str, Any], ...]
    changed: tuple[int, ...]
    answers: tuple[Region, ...]

    def node(self) -> dict[str, Any]:
        """Return the JSON that a rank builds the call from."""
        return {
            "arguments": list(self.arguments),
            "outputs": [place.node() for place in self.outputs],
            "changed": list(self.changed),
            "sealed": [place.range for place in self.inputs],
            "committed": [place.range for place in self.answers],
        }


@dataclass
class Cursor:
    """Hands out regions one behind the other, with a guard band before each and after the last."""

    end: int = 0
    guards: list[tuple[int, int]] = field(default_factory=list)

    def place(self, shape: tuple[int, ...], dtype: torch.dtype) -> Region:
        """Return the next region that holds such a tensor, aligned to ALIGNMENT bytes."""
        offset = -(-(self.end + GUARD_BYTES) // ALIGNMENT) * ALIGNMENT
        place = Region(offset=offset, shape=shape, dtype=dtype)
        self.guards.append((self.end, offset))
        self.end = offset + place.nbytes
        return place

    def close(self) -> int:
        """Return the slab's size in bytes, the last guard band included."""
        self.guards.append((self.end, self.end + GUARD_BYTES))
        return self.end + GUARD_BYTES


def lay_out(
    cursor: Cursor,
    inputs: dict[str, object],
    outputs: list[tuple[tuple[int, ...], torch.dtype]],
    mutates: tuple[str, ...] = (),
) -> SlotLayout:
    """Place a call's inputs and outputs (shapes and dtypes), one behind the other."""
    places: list[Region] = []
    arguments, changed = [], []
    for name, value in inputs.items():
        before = len(places)
        arguments.append(_argument_node(cursor, value, places))
        changed += places[before:] if name in mutates else []
    own = tuple(cursor.place(shape, dtype) for shape, dtype in outputs)
    return SlotLayout(
        inputs=tuple(places),
        outputs=own,
        arguments=tuple(arguments),
        changed=tuple(i for i, name in enumerate(inputs) if name in mutates),
        answers=(*own, *changed),
    )


def _argument_node(cursor: Cursor, value: object, places: list[Region]) -> dict[str, Any]:
    """Describe how a rank builds the argument anew; tensors are placed in the order of
    `tensors(value)`."""
    if isinstance(value, torch.Tensor) and not value.is_sparse:
        places.append(cursor.place(tuple(value.shape), value.dtype))
        return {"tensor": places[-1].node()}
    if isinstance(value, torch.Size):
        return {"size": list(value)}
    if isinstance(value, (list, tuple)):
        items = [_argument_node(cursor, item, places) for item in value]
        return {"items": items, "tuple": isinstance(value, tuple)}
    parts = [_argument_node(cursor, part, places) for part in tensors(value)]
    if isinstance(value, torch.Tensor):
        return {"sparse": parts, "shape": list(value.shape)}
    if isinstance(value, torch.nn.Linear):
        return {"linear": parts}
    if isinstance(value, GroupRef):
        return {"group": value.axis}
    return {"value": value}
