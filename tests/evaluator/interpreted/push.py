# verdict: ok
# backend: triton
# placement: shared
# flags: interpreted
# shows: every rank writes its part into all others' memory, signals by pads, and adds up
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl

CAPACITY = 1 << 16  # elements: more than the largest input has
BLOCK = 512

world = dist.group.WORLD
assert world is not None
RANK, RANKS = dist.get_rank(), dist.get_world_size()
shared = symm_mem.empty((2, RANKS, CAPACITY), dtype=torch.float32, device=torch.device("cpu"))
handle = symm_mem.rendezvous(shared, world)
calls = 0


@triton.jit  # type: ignore[untyped-decorator]
def push(  # noqa: PLR0917 - a launch has no other way to pass them
    own: tl.tensor,
    buffers: tl.tensor,
    begins: int,
    count: int,
    RANKS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(own + place, mask=place < count)
    for peer in tl.static_range(RANKS):
        theirs = tl.load(buffers.to(tl.pointer_type(tl.int64)) + peer).to(
            tl.pointer_type(tl.float32)
        )
        tl.store(theirs + begins + place, values, mask=place < count)


@triton.jit  # type: ignore[untyped-decorator]
def meet(pads: tl.tensor, rank: int, RANKS: tl.constexpr) -> None:
    table = pads.to(tl.pointer_type(tl.int64))
    own = tl.load(table + rank).to(tl.pointer_type(tl.int32))
    for peer in tl.static_range(RANKS):
        theirs = tl.load(table + peer).to(tl.pointer_type(tl.int32))
        while tl.atomic_cas(theirs + rank, 0, 1, sem="release", scope="sys") != 0:
            pass
    for peer in tl.static_range(RANKS):
        while tl.atomic_cas(own + peer, 1, 0, sem="acquire", scope="sys") != 1:
            pass


@triton.jit  # type: ignore[untyped-decorator]
def add(  # noqa: PLR0917 - as above
    parts: tl.tensor,
    total: tl.tensor,
    stride: int,
    count: int,
    RANKS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    result = tl.zeros((BLOCK,), dtype=tl.float32)
    for rank in tl.static_range(RANKS):
        result += tl.load(parts + rank * stride + place, mask=place < count, other=0.0)
    tl.store(total + place, result, mask=place < count)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    global calls
    half, calls = calls % 2, calls + 1  # a peer may still read the other one
    count, total = tensor.numel(), torch.empty_like(tensor)
    grid = (triton.cdiv(count, BLOCK),)
    begins = (half * RANKS + RANK) * CAPACITY
    push[grid](tensor, handle.buffer_ptrs_dev, begins, count, RANKS, BLOCK)
    meet[(1,)](handle.signal_pad_ptrs_dev, RANK, RANKS)
    add[grid](shared[half], total, CAPACITY, count, RANKS, BLOCK)
    return total
