"""Process groups along the axes of a problem's mesh, and their place in a call's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from math import prod

import torch.distributed as dist

from problems.spec import Dims, GroupRef


def mesh_groups(
    axes: tuple[str, ...], d: Dims, rank: int, world_size: int
) -> Mapping[str, dist.ProcessGroup]:
    """This rank's group along every axis, and `world`. Every rank must call it.

    Ranks are laid out row-major: the last axis is consecutive ranks. Raises ValueError when the
    axes' lengths do not multiply to the world size.
    """
    world = dist.group.WORLD
    if world is None:
        raise ValueError("join the process group before making a mesh")
    if axes == ("world",):
        return {"world": world}
    lengths = tuple(getattr(d, axis) for axis in axes)
    if prod(lengths) != world_size:
        raise ValueError(f"mesh {axes} of {lengths} does not hold {world_size} ranks")
    return _groups(axes, lengths, rank, world)


@cache
def _groups(
    axes: tuple[str, ...], lengths: tuple[int, ...], rank: int, world: dist.ProcessGroup
) -> Mapping[str, dist.ProcessGroup]:
    groups = {"world": world}
    places = list(product(*(range(length) for length in lengths)))
    for index, axis in enumerate(axes):
        for line in _lines(places, index):
            made = dist.new_group(line)
            if rank in line:
                groups[axis] = made
    return groups


def arguments(
    inputs: Mapping[str, object], groups: Mapping[str, dist.ProcessGroup]
) -> Iterable[object]:
    """The positional arguments of a call: inputs with every GroupRef replaced by the real group."""
    return [groups[v.axis] if isinstance(v, GroupRef) else v for v in inputs.values()]


def _lines(places: list[tuple[int, ...]], axis: int) -> list[list[int]]:
    """Ranks that differ in one coordinate only, one list per line through the mesh."""
    lines: dict[tuple[int, ...], list[int]] = {}
    for rank, place in enumerate(places):
        lines.setdefault(place[:axis] + place[axis + 1 :], []).append(rank)
    return list(lines.values())
