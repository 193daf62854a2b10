"""What the tests run on gloo ranks: functions of a module, because they travel by name."""

from __future__ import annotations

import torch
import torch.distributed as dist

from problems.mesh import mesh_groups
from problems.partial_collectives import neighbour_only, without_last_element
from problems.spec import Dims


def raise_on_last_rank(rank: int, world_size: int) -> int:
    if rank == world_size - 1:
        raise ValueError("the last rank fails")
    return rank


def rank_and_world(rank: int, world_size: int) -> tuple[int, int]:
    return rank, world_size


def told_in_part(rank: int, world_size: int) -> dict[str, list[float]]:
    """Exchange rank + 1 where only the neighbour is heard."""
    told = {}
    with neighbour_only():
        mine = torch.tensor([rank + 1.0])
        dist.all_reduce(mine)
        told["all_reduce"] = mine.tolist()
        every = torch.empty(world_size)
        dist.all_gather_into_tensor(every, torch.tensor([rank + 1.0]))
        told["all_gather"] = every.tolist()
        dist.all_to_all_single(every, torch.full((world_size,), rank + 1.0))
        told["all_to_all"] = every.tolist()
        sent = torch.tensor([rank + 1.0])
        dist.broadcast(sent, src=0)
        told["broadcast"] = sent.tolist()
        lengths = torch.tensor([rank + 1])
        dist.all_reduce(lengths)
        told["lengths"] = lengths.tolist()
    return told


def told_without_last(rank: int, world_size: int) -> dict[str, list[float]]:
    """Exchange [1, 2], of which the last number is not sent."""
    own, told = torch.tensor([1.0, 2.0]), {}
    with without_last_element():
        sent = own.clone()
        dist.broadcast(sent, src=0)
        told["broadcast"] = sent.tolist()
        every = torch.empty(2 * world_size)
        dist.all_gather_into_tensor(every, own)
        told["all_gather"] = every.tolist()
        total = own.clone()
        dist.all_reduce(total)
        told["all_reduce"] = total.tolist()
    return {**told, "own": own.tolist()}


def mesh_members(rank: int, world_size: int, ep: int) -> dict[str, list[int]]:
    d = Dims(ep=ep, ep_fsdp=world_size // ep)
    groups = mesh_groups(("ep_fsdp", "ep"), d, rank, world_size)
    return {axis: dist.get_process_group_ranks(group) for axis, group in groups.items()}
