"""Do torch.distributed's collectives for ranks that share a GPU, where NCCL refuses to work.

Tensors are staged through host memory, and gloo exchanges their bytes: every dtype, uneven parts.
Towards the GPU that orders as NCCL does, or more strictly: a call waits for what the current stream
was given before, and the result is there when it returns. `barrier` waits for the device first,
as NCCL's stands behind it in its stream: kernels rely on that before they read a peer's memory.

What it cannot do: calls inside a CUDA graph, methods of a group itself, functional collectives, and
several operations begun in another order by other ranks, as each is finished where it is begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as c10d

from problems.running.staging import (
    Finished,
    bytes_of,
    exchange,
    originals,
    part_bytes,
    put,
    put_bytes,
    rank_in_group,
    reduced,
    refuse_capture,
    split,
)

_NEW_NAMES = {
    "all_gather_into_tensor": "all_gather_single",
    "reduce_scatter_tensor": "reduce_scatter_single",
}

Sizes = Sequence[int] | None


def install() -> None:
    """Replace torch's functions by those of this module, in this process and for good."""
    if vars(originals):
        return
    for function in _REPLACED:
        name = function.__name__
        for alias in {name, _NEW_NAMES.get(name, name)}:
            if hasattr(c10d, alias):
                setattr(originals, alias, getattr(c10d, alias))
                setattr(c10d, alias, function)
                setattr(dist, alias, function)


def all_reduce(
    tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Finished | None:
    put(tensor, reduced(tensor, op, group))
    return _handle(async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = dist.ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Finished | None:
    total = reduced(tensor, op, group)
    if dist.get_rank(group) == rank_in_group(dst, group_dst, group):
        put(tensor, total)
    return _handle(async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Any = dist.ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Finished | None:
    parts = reduced(input, op, group).reshape(dist.get_world_size(group), -1)
    put(output, parts[dist.get_rank(group)].reshape(output.shape))
    return _handle(async_op)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Any = dist.ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Finished | None:
    totals = [reduced(part, op, group) for part in input_list]
    put(output, totals[dist.get_rank(group)].reshape(output.shape))
    return _handle(async_op)


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Finished | None:
    own = [bytes_of(tensor)] * dist.get_world_size(group)
    put_bytes(tensor_list, exchange(own, [part.nbytes for part in tensor_list], group))
    return _handle(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Finished | None:
    world_size = dist.get_world_size(group)
    if input_tensor.nbytes * world_size != output_tensor.nbytes:
        raise ValueError(f"the output must have {world_size} times the input's elements")
    own = [bytes_of(input_tensor)] * world_size
    got = exchange(own, [input_tensor.nbytes] * world_size, group)
    put_bytes([output_tensor], [torch.cat(got)])
    return _handle(async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sizes = None,
    input_split_sizes: Sizes = None,
    group: Any = None,
    async_op: bool = False,
) -> Finished | None:
    parts = split(bytes_of(input), part_bytes(input, input_split_sizes, group))
    got = exchange(parts, part_bytes(output, output_split_sizes, group), group)
    put_bytes([output], [torch.cat(got)])
    return _handle(async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Finished | None:
    room = [part.nbytes for part in output_tensor_list]
    put_bytes(output_tensor_list, exchange([bytes_of(p) for p in input_tensor_list], room, group))
    return _handle(async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Finished | None:
    raw = bytes_of(tensor)
    originals.broadcast(raw, src, group=group, group_src=group_src)
    put_bytes([tensor], [raw])
    return _handle(async_op)


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Finished | None:
    root, ranks = rank_in_group(dst, group_dst, group), range(dist.get_world_size(group))
    own, nothing = bytes_of(tensor), torch.empty(0, dtype=torch.uint8)
    kept = list(gather_list or ()) if dist.get_rank(group) == root else []
    parts = [own if rank == root else nothing for rank in ranks]
    got = exchange(parts, [part.nbytes for part in kept] or [0 for _ in ranks], group)
    put_bytes(kept, got[: len(kept)])
    return _handle(async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Finished | None:
    root, ranks = rank_in_group(src, group_src, group), range(dist.get_world_size(group))
    nothing = torch.empty(0, dtype=torch.uint8)
    is_root = dist.get_rank(group) == root
    parts = [bytes_of(p) for p in scatter_list or ()] if is_root else [nothing for _ in ranks]
    got = exchange(parts, [tensor.nbytes if rank == root else 0 for rank in ranks], group)
    put_bytes([tensor], [got[root]])
    return _handle(async_op)


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Finished:
    raw = bytes_of(tensor)
    work = originals.isend(raw, dst, group=group, tag=tag, group_dst=group_dst)
    return _kept(lambda: (work.wait(), raw))


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Finished:
    raw = torch.empty(tensor.nbytes, dtype=torch.uint8)
    work = originals.irecv(raw, src, group=group, tag=tag, group_src=group_src)

    def receive() -> None:
        work.wait()
        put_bytes([tensor], [raw])

    return _kept(receive)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    raw = torch.empty(tensor.nbytes, dtype=torch.uint8)
    work = originals.irecv(raw, src, group=group, tag=tag, group_src=group_src)
    work.wait()
    put_bytes([tensor], [raw])
    if src is not None:
        return src
    sender: int = work._source_rank() if group_src is None else group_src
    return sender if group is None else dist.get_global_rank(group, sender)


def barrier(group: Any = None, async_op: bool = False, **_: object) -> Finished | None:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        refuse_capture()
        torch.cuda.synchronize()
    originals.barrier(group=group)
    return _handle(async_op)


def new_group(ranks: Any = None, timeout: Any = None, *_: object, **how: Any) -> Any:
    own = {name: how[name] for name in how.keys() & {"group_desc", "use_local_synchronization"}}
    return originals.new_group(ranks, timeout, **own)


_REPLACED: tuple[Callable[..., Any], ...] = (
    *(all_reduce, reduce, reduce_scatter, reduce_scatter_tensor, all_gather),
    *(all_gather_into_tensor, all_to_all, all_to_all_single, broadcast, gather, scatter),
    *(isend, irecv, send, recv, barrier, new_group),
)
_unfinished: list[Finished] = []  # nobody may wait for a send, whose bytes have to stay meanwhile


def _kept(finish: Callable[[], object]) -> Finished:
    _unfinished[:] = [work for work in _unfinished if not work.is_completed()]
    _unfinished.append(Finished(finish))
    return _unfinished[-1]


def _handle(async_op: bool) -> Finished | None:
    return Finished() if async_op else None
