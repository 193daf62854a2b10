"""What the tests run on gloo ranks: functions of a module, because they travel by name."""

from __future__ import annotations

import sys
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

import problems
from problems.audit import rank_rules
from problems.audit.mutants import Edits, edited_reference
from problems.audit.partial_collectives import neighbour_only, without_last_element
from problems.audit.screen import Setting, outcome, scene_of, scene_on_rank, trials_of
from problems.audit.wires import INT8, coarse
from problems.limits import Compared
from problems.running.mesh import mesh_groups
from problems.spec import Dims


def raise_on_last_rank(rank: int, world_size: int) -> int:
    if rank == world_size - 1:
        raise ValueError("the last rank fails")
    return rank


def rank_and_world(rank: int, world_size: int) -> tuple[int, int]:
    return rank, world_size


def told_in_part(rank: int, world_size: int) -> dict[str, list[float]]:
    """Exchange rank + 1 where only the neighbour is heard."""
    told: dict[str, list[float]] = {}
    with neighbour_only() as forgotten:
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
        told["forgotten"] = sorted(forgotten)
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


def collectives_on_a_coarse_wire(rank: int, world_size: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Return what every collective leaves on a wire of int8, and on its own."""
    with coarse(INT8) as wire:
        got = _collectives(rank, world_size)
    if not bool(wire.lossy):
        raise ValueError("nothing was coded")
    plain = _collectives(rank, world_size)
    return {name: (got[name], plain[name]) for name in got}


def integers_on_a_coarse_wire(rank: int, world_size: int) -> tuple[Tensor, bool]:
    with coarse(INT8) as wire:
        counts = torch.arange(100, 200) * (rank + 1)
        dist.all_reduce(counts)
        few = torch.randn(32)
        dist.all_reduce(few)
    return counts, bool(wire.lossy)


def _collectives(rank: int, world_size: int) -> dict[str, Tensor]:
    values = torch.randn(world_size, 100, generator=torch.Generator().manual_seed(rank))
    first, flat = values.clone(), values.view(-1)
    gathered, shared = torch.empty(world_size * values.numel()), torch.empty(100)
    dealt, swapped = torch.empty(100), torch.empty_like(values)
    passed, collected = torch.empty(100), [torch.empty(100) for _ in range(world_size)]
    dist.all_gather_into_tensor(gathered, flat)
    dist.reduce_scatter_tensor(shared, flat)
    dist.all_to_all_single(swapped, values)
    dist.broadcast(first, src=1)
    dist.scatter(dealt, list(values) if rank == 0 else None, src=0)
    dist.gather(values[0], collected if rank == 0 else None, dst=0)
    send = dist.P2POp(dist.isend, values[0], (rank + 1) % world_size)
    receive = dist.P2POp(dist.irecv, passed, (rank - 1) % world_size)
    for work in dist.batch_isend_irecv([send, receive]):
        work.wait()
    total, onto = values.clone(), values.clone()
    dist.all_reduce(total)
    dist.reduce(onto, dst=0)
    found = {"all_gather": gathered.view(world_size, -1), "reduce_scatter": shared}
    found |= {"all_to_all": swapped, "broadcast": first, "scatter": dealt, "exchange": passed}
    found |= {"all_reduce": total}
    return found | ({"gather": torch.stack(collected), "reduce": onto} if rank == 0 else {})


def told_at_ties(
    rank: int, world_size: int, number: int, edit: list[str], values: tuple[float, float]
) -> list[str | None]:
    """Say what is wrong under `upstream` of the reference with an edit, as the problem settles ties
    and without, where every eighth element is the largest, all others of the first rank are at a
    tie, and those of other ranks are not, and of the other sign."""
    setting = Setting(
        name=problems.find(str(number)),
        profile="upstream",
        size="tiny",
        dtype="bfloat16",
        secret=b"",
        device="cpu",
    )
    scene = scene_on_rank(rank, world_size, setting, trials_of(setting)[0])
    given, (largest, tie) = next(iter(scene.inputs.values())), values
    assert isinstance(given, Tensor)
    given.fill_(-15 / 16 * tie if rank else tie).view(-1)[::8] = largest
    scene = scene_of(scene.module, scene.context, scene.inputs, scene.groups)
    got = scene.call(edited_reference(scene.module, [edit], "with a product"))
    return [outcome(told, scene.truth, scene.tolerances).why for told in (scene.settled(got), got)]


def untold_with_an_empty_table(rank: int, world_size: int, name: str) -> list[str]:
    with patch.object(rank_rules, "compared", lambda _: Compared()):
        return rank_rules._untold(rank, world_size, name)


def told_of_edits(rank: int, world_size: int, setting: Setting, edits: Edits) -> list[str | None]:
    """Say for every trial what is wrong with the reference with these edits."""
    found = []
    for spec in trials_of(setting):
        scene = scene_on_rank(rank, world_size, setting, spec)
        got = scene.call(edited_reference(scene.module, edits, "with edits"))
        found.append(outcome(got, scene.truth, scene.tolerances).why)
    return found


def lines_over_a_wire(rank: int, world_size: int, is_first: bool) -> tuple[bool, bool]:
    """Say whether two sums are changed, where one of them alone is sent as int8."""
    values = torch.arange(100.0) * (rank + 1) ** 0.5
    first, second, whole = values.clone(), values.clone(), values.clone()
    start = sys._getframe().f_lineno
    with coarse(INT8, start + (2 if is_first else 3)):
        dist.all_reduce(first)
        dist.all_reduce(second)
    dist.all_reduce(whole)
    return not torch.equal(first, whole), not torch.equal(second, whole)
