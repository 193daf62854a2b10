"""What the tests run on gloo ranks: functions of a module, because they travel by name."""

from __future__ import annotations

import torch.distributed as dist

from problems.mesh import mesh_groups
from problems.spec import Dims


def raise_on_last_rank(rank: int, world_size: int) -> int:
    if rank == world_size - 1:
        raise ValueError("the last rank fails")
    return rank


def rank_and_world(rank: int, world_size: int) -> tuple[int, int]:
    return rank, world_size


def mesh_members(rank: int, world_size: int, ep: int) -> dict[str, list[int]]:
    d = Dims(ep=ep, ep_fsdp=world_size // ep)
    groups = mesh_groups(("ep_fsdp", "ep"), d, rank, world_size)
    return {axis: dist.get_process_group_ranks(group) for axis, group in groups.items()}
