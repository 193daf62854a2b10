"""What the tests run on three ranks whose results are late: functions of a module, as they travel
by name.

A task that returns tensors by name returns each as it was before the wait, and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from evaluator.rank import late_results

RANKS = 3
_installed: list[bool] = []


def run(rank: int, world_size: int, name: str) -> Any:
    if not _installed:
        late_results.install()
        _installed.append(True)
    return TASKS[name](rank)


def own(rank: int, length: int = 6) -> Tensor:
    return torch.arange(length) + 10.0 * rank


def _seen(outputs: Iterable[Tensor], works: Iterable[Any]) -> list[list[list[float]]]:
    kept = list(outputs)
    before = [output.tolist() for output in kept]
    for work in works:
        work.wait()
    return [before, [output.tolist() for output in kept]]


def sums(rank: int) -> Any:
    total, one, part, other = own(rank), own(rank), torch.empty(2), torch.empty(2)
    works = [
        dist.all_reduce(total, async_op=True),
        dist.reduce(one, 1, dist.ReduceOp.SUM, None, True),
        dist.reduce_scatter_tensor(part, own(rank), async_op=True),
        dist.reduce_scatter(other, list(own(rank).view(3, 2)), async_op=True),
    ]
    return _seen([total, one, part, other], works)


def copies(rank: int) -> Any:
    told, part, whole = own(rank), torch.empty(2), torch.empty(18)
    every, kept = list(torch.empty(3, 6)), list(torch.empty(3, 6)) if rank == 2 else None
    works = [
        dist.broadcast(told, src=1, async_op=True),
        dist.scatter(part, list(own(0).view(3, 2)) if rank == 0 else None, async_op=True),
        dist.all_gather_into_tensor(whole, own(rank), async_op=True),
        dist.all_gather(every, own(rank), async_op=True),
        dist.gather(own(rank), kept, dst=2, async_op=True),
    ]
    return _seen([told, part, whole, *every, *(kept or [])], works)


def exchanges(rank: int) -> Any:
    """Rank r sends r + n numbers to rank n, then two to each."""
    counts = [rank + peer for peer in range(RANKS)]
    rows, parts = torch.empty(sum(counts)), list(torch.empty(3, 2))
    sent = torch.full((sum(counts),), float(rank))
    works = [
        dist.all_to_all_single(rows, sent, counts, counts, async_op=True),
        dist.all_to_all(parts, list(own(rank).view(3, 2)), async_op=True),
    ]
    return _seen([rows, *parts], works)


def messages(rank: int) -> Any:
    after, before = (rank + 1) % RANKS, (rank - 1) % RANKS
    alone, batched, received = (torch.empty(6) for _ in range(3))
    sent = own(rank)
    works = [dist.isend(sent, after), dist.irecv(alone, before)]
    works += dist.batch_isend_irecv(
        [dist.P2POp(dist.irecv, batched, before), dist.P2POp(dist.isend, sent, after)]
    )
    seen = _seen([alone, batched], works)
    sending: Any = dist.isend(sent, after, tag=3)
    sender = dist.recv(received, tag=3)
    sending.wait()
    return seen, sender, received.tolist()


def coalesced(rank: int) -> Any:
    first, second, third = own(rank), torch.empty(18), own(rank)
    _coalescing_manager = vars(dist)["_coalescing_manager"]
    with _coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(first)
        dist.all_gather_into_tensor(second, own(rank))
    seen = _seen([first, second], [manager])
    with _coalescing_manager():
        dist.all_reduce(third)
    return seen, third.tolist()


def in_place(rank: int) -> Any:
    """Each rank's own part of what is gathered lies where it belongs; the part of a sum that it
    keeps lies in what it adds."""
    whole, rows, added = torch.zeros(3, 6), torch.zeros(3, 6), own(rank)
    whole[rank] = rows[rank] = own(rank)
    kept = list(rows)
    works = [
        dist.all_gather_into_tensor(whole.view(18), whole[rank], async_op=True),
        dist.all_gather(kept, kept[rank], async_op=True),
        dist.reduce_scatter_tensor(added[2 * rank : 2 * rank + 2], added, async_op=True),
    ]
    return _seen([whole, rows, added], works)


def kinds(rank: int) -> Any:
    """Whether any element of a sum holds its result before the wait, and whether all do after."""
    found = []
    for kind in KINDS:
        total = own(rank).to(kind)
        expected = sum((own(peer).to(kind) for peer in range(RANKS)), torch.zeros(6, dtype=kind))
        work: Any = dist.all_reduce(total, async_op=True)
        is_early = bool((total == expected).any())
        work.wait()
        found.append((is_early, bool((total == expected).all())))
    return found


def strides(rank: int) -> Any:
    """Every other column is written to, and what is sent is one number repeated."""
    whole, sent = torch.zeros(6, 4), torch.full((), float(rank + 1)).expand(2, 2)
    work: Any = dist.all_gather_into_tensor(whole[:, ::2], sent, async_op=True)
    before = whole.isnan().any(dim=0).tolist()
    work.wait()
    return before, whole.tolist()


def handles(rank: int) -> Any:
    """What stands for waiting."""
    found = []
    for finish in FINISHES:
        total = own(rank)
        work: Any = dist.all_reduce(total, async_op=True)
        told = finish(work)
        found.append((total.tolist(), told))
    return found


def _polled(work: Any) -> bool:
    while not work.is_completed():
        pass
    return bool(work.is_success())


def orders(rank: int) -> Any:
    """Ranks wait in different orders, in two groups, and one that waits late sees what came
    first; what a kernel writes after a wait stays."""
    group = dist.new_group([0, 1, 2])
    tensors = [own(rank) for _ in range(4)]
    works: list[Any] = [
        dist.all_reduce(tensor, group=group if index % 2 else None, async_op=True)
        for index, tensor in enumerate(tensors)
    ]
    for index in (2, 0, 1) if rank else (1, 0, 2):
        works[index].wait()
    seen = [tensor.tolist() for tensor in tensors]
    works[3].wait()
    tensors[3].zero_()
    works[3].wait()
    return seen, tensors[3].tolist()


def the_last_wait(rank: int) -> Any:
    """NCCL does what is begun in a group one after the other."""
    first, second, other = own(rank), own(rank), torch.empty(6)
    dist.all_reduce(first, async_op=True)
    sending = dist.isend(own(rank), (rank + 1) % RANKS)
    receiving = dist.irecv(other, (rank - 1) % RANKS)
    work: Any = dist.all_reduce(second, async_op=True)
    work.wait()
    seen = [first.tolist(), second.tolist(), other.tolist()]
    for kept in (sending, receiving):
        kept.wait()  # type: ignore[union-attr]
    return seen


def blocking_calls(rank: int) -> Any:
    """They end behind what was begun in their group, so that is done, too."""
    first, second, third = own(rank), own(rank), own(rank)
    dist.all_reduce(first, async_op=True)
    dist.all_reduce(second)
    dist.all_reduce(third, async_op=True)
    dist.barrier()
    return [first.tolist(), second.tolist(), third.tolist()]


def overwritten_inputs(rank: int) -> Any:
    value, whole = own(rank), torch.empty(18)
    work: Any = dist.all_gather_into_tensor(whole, value, async_op=True)
    value.zero_()
    work.wait()
    return whole.tolist()


def not_in_the_group(rank: int) -> Any:
    group, value = dist.new_group([0, 1]), own(rank)
    work: Any = None
    if rank < 2:
        work = dist.all_reduce(value, group=group, async_op=True)
    if work is not None:
        work.wait()
    return value.tolist()


def gradients(rank: int) -> list[float]:
    """What is reduced in place may have been kept for the way back, as it may with torch's own."""
    weight = torch.ones(6, requires_grad=True)
    activated = (weight * (rank + 1)).exp()
    work: Any = dist.all_reduce(activated.detach(), dist.ReduceOp.MAX, async_op=True)
    work.wait()
    activated.sum().backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    return (weight.grad / torch.e**RANKS).tolist()


def compiled(rank: int) -> list[float]:
    def twice(tensor: Tensor) -> Tensor:
        total = tensor + tensor
        dist.all_reduce(total)
        work: Any = dist.all_reduce(total, async_op=True)
        work.wait()
        return total + 1

    return torch.compile(twice, backend="eager")(own(rank)).tolist()


FINISHES: tuple[Callable[[Any], object], ...] = (
    lambda work: work.wait(),
    lambda work: work.synchronize(),
    lambda work: work.get_future().wait()[0].tolist(),
    lambda work: [work.wait(), work.result()[0].tolist()][1],
    _polled,
)
KINDS = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64),
    *(torch.int64, torch.int32, torch.int8, torch.uint8),
)
TASKS: dict[str, Callable[[int], Any]] = {
    task.__name__: task
    for task in (
        *(sums, copies, exchanges, messages, coalesced, in_place, kinds, strides, handles),
        *(orders, the_last_wait, blocking_calls, overwritten_inputs, not_in_the_group),
        *(gradients, compiled),
    )
}
