"""Make the world and its groups along a problem's mesh, and put them into a call's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cache
from itertools import product
from math import prod

import torch
import torch.distributed as dist

from problems.running import staged_collectives
from problems.spec import Dims, GroupRef


def join_world(
    device_type: str,
    store: str,
    rank: int,
    world_size: int,
    timeout_s: float = 1800.0,
    *,
    is_shared: bool = False,
) -> torch.device:
    """Make this process a rank of the default group, which meets at the file `store`.

    Returns the rank's device: with `cuda` the GPU of its number, current from now on, and NCCL
    joins the ranks; with `cpu` gloo does. Where ranks share a device it is the first, and gloo
    exchanges copies in host memory, whatever the device.
    """
    device = torch.device("cpu")
    if device_type == "cuda":
        device = torch.device("cuda", 0 if is_shared else rank)
    is_nccl = device.type == "cuda" and not is_shared
    if is_shared:
        staged_collectives.install()
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.backends.cudnn.allow_tf32 = False  # a float32 convolution is one, as products are
    dist.init_process_group(
        "nccl" if is_nccl else "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=timeout_s),
        device_id=device if is_nccl else None,
    )
    return device


def mesh_groups(
    axes: tuple[str, ...], d: Dims, rank: int, world_size: int
) -> Mapping[str, dist.ProcessGroup]:
    """Return this rank's group along every axis, and `world`. Every rank must call it.

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
    """Return a call's positional arguments: inputs with every GroupRef replaced by its group."""
    return [groups[v.axis] if isinstance(v, GroupRef) else v for v in inputs.values()]


def _lines(places: list[tuple[int, ...]], axis: int) -> list[list[int]]:
    """Return ranks that differ in one coordinate only, one list per line through the mesh."""
    lines: dict[tuple[int, ...], list[int]] = {}
    for rank, place in enumerate(places):
        lines.setdefault(place[:axis] + place[axis + 1 :], []).append(rank)
    return list(lines.values())
