"""What the tests run on ranks with staged collectives: functions of a module, as they travel by
name."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from problems.running import staged_collectives
from problems.running.staging import Finished


def own(rank: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.arange(6) + 10 * rank).to(dtype)


def run(rank: int, world_size: int, name: str) -> object:
    staged_collectives.install()
    return TASKS[name](rank, world_size)


def sums(rank: int, world_size: int) -> list[list[float]]:
    """Sums in every dtype, as real numbers."""
    found = []
    for dtype in SUMMED:
        total = own(rank, dtype)
        dist.all_reduce(total)
        found.append(torch.view_as_real(total)[:, 0] if total.is_complex() else total)
    return [total.to(torch.float64).tolist() for total in found]


def means_and_flags(rank: int, world_size: int) -> tuple[list[float], list[bool]]:
    mean, flags = own(rank), torch.arange(3) == rank
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    dist.all_reduce(flags)
    return mean.tolist(), flags.tolist()


def reduced_to_one(rank: int, world_size: int) -> tuple[list[float], list[float]]:
    total, part = own(rank), torch.empty(2)
    dist.reduce(total, dst=1)
    dist.reduce_scatter_tensor(part, own(rank))
    return total.tolist(), part.tolist()


def scattered_sums(rank: int, world_size: int) -> list[float]:
    parts = [torch.full((number + 1,), float(rank + number)) for number in range(world_size)]
    part = torch.empty(rank + 1)
    dist.reduce_scatter(part, parts)
    return part.tolist()


def gathered(rank: int, world_size: int) -> tuple[list[float], list[list[float]]]:
    """Into a transposed tensor, and uneven parts of half the size of a float."""
    together = torch.empty(6, world_size).t()
    dist.all_gather_into_tensor(together, own(rank))
    parts = [torch.empty(number + 1, dtype=torch.bfloat16) for number in range(world_size)]
    dist.all_gather(parts, torch.full((rank + 1,), rank, dtype=torch.bfloat16))
    return together.flatten().tolist(), [part.tolist() for part in parts]


def exchanged(rank: int, world_size: int) -> tuple[list[float], list[int]]:
    """Rank r sends r + n rows to rank n; then one integer to each."""
    sent = [rank + number for number in range(world_size)]
    received = [number + rank for number in range(world_size)]
    rows = torch.empty(sum(received), 2, dtype=torch.float16)
    dist.all_to_all_single(rows, torch.full((sum(sent), 2), rank).half(), received, sent)
    one = [torch.empty((), dtype=torch.int8) for _ in range(world_size)]
    dist.all_to_all(one, [torch.tensor(10 * rank + n, dtype=torch.int8) for n in range(world_size)])
    return rows[:, 0].tolist(), [int(value) for value in one]


def one_to_all(rank: int, world_size: int) -> tuple[list[float], list[float], list[int]]:
    value, part, told = own(rank), torch.empty(2), [rank]
    dist.broadcast(value, src=2)
    source = list(own(rank).split(2)) if rank == 1 else None  # type: ignore[no-untyped-call]
    dist.scatter(part, source, src=1)
    dist.broadcast_object_list(told, src=1)
    return value.tolist(), part.tolist(), told


def all_to_one(rank: int, world_size: int) -> tuple[list[list[float]], list[object]]:
    kept = [torch.empty(6) for _ in range(world_size)] if rank == 2 else None
    dist.gather(own(rank), kept, dst=2)
    told: list[object] = [None] * world_size
    dist.all_gather_object(told, {"rank": rank})
    return [part.tolist() for part in kept or ()], told


def ring(rank: int, world_size: int) -> tuple[list[float], list[float], int]:
    """Messages all in flight at once, then one that is received from whoever sends."""
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    batched, alone = torch.empty(6), torch.empty(6)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.irecv, batched, before), dist.P2POp(dist.isend, own(rank), after)]
    )
    for work in works:
        work.wait()
    sending = dist.isend(own(rank), after, tag=7)
    sender = dist.recv(alone, tag=7)
    assert sending is not None
    sending.wait()
    return batched.tolist(), alone.tolist(), sender


def handles(rank: int, world_size: int) -> tuple[list[float], bool, bool]:
    total = own(rank)
    work = dist.all_reduce(total, async_op=True)
    assert isinstance(work, Finished)
    is_done = work.is_completed()
    work.get_future().wait()
    return total.tolist(), is_done, work.wait()


def subgroups(rank: int, world_size: int) -> list[float]:
    """A group that is asked for with a backend that is not there, of ranks 0 and 2."""
    group = dist.new_group([0, 2], backend="nccl")
    value = own(rank)
    if rank != 1:
        dist.broadcast(value, src=2, group=group)
        dist.all_reduce(value, group=group)
        dist.barrier(group, device_ids=[0])
    return value.tolist()


def refusals(rank: int, world_size: int) -> list[str]:
    told = []
    for output, value in ((torch.empty(4), torch.empty(4)), (torch.empty(7), torch.empty(3))):
        try:
            if len(value) == 4:
                dist.all_to_all_single(output, value)
            else:
                dist.all_gather_into_tensor(output, value)
        except ValueError as error:
            told.append(str(error))
    return told


SUMMED = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.float8_e4m3fn),
)
TASKS: dict[str, Callable[[int, int], object]] = {
    task.__name__: task
    for task in (
        *(sums, means_and_flags, reduced_to_one, scattered_sums, gathered, exchanged),
        *(one_to_all, all_to_one, ring, handles, subgroups, refusals),
    )
}
