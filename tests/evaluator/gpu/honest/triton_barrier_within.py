# verdict: ok
# backend: triton
# shows: one Triton kernel that publishes, waits for the other ranks by signal pads, and sums
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl
from utils.triton_utils import (  # type: ignore[import-not-found]
    blockwise_barrier,
    sync_threads,
)

CAPACITY = 80 << 20  # elements: more than the largest input has
BLOCK = 4096
BLOCKS = 128  # all of them fit on the GPU at once: they wait for each other's like on other ranks

world = dist.group.WORLD
assert world is not None
shared = symm_mem.empty(
    CAPACITY, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
handle = symm_mem.rendezvous(shared, world)


@triton.jit  # type: ignore[untyped-decorator]
def publish_and_sum(  # noqa: PLR0917 - a launch has no other way to pass them
    addresses: tl.tensor,
    pads: tl.tensor,
    own: tl.tensor,
    total: tl.tensor,
    count: int,
    rank: int,
    RANKS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    table = addresses.to(tl.pointer_type(tl.uint64))
    mine = tl.load(table + rank).to(tl.pointer_type(tl.bfloat16))
    first, step = tl.program_id(0), tl.num_programs(0)
    for tile in range(first, tl.cdiv(count, BLOCK), step):
        place = tile.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # type: ignore[attr-defined]
        values = tl.load(own + place, mask=place < count, other=0.0)
        tl.store(tl.multiple_of(mine, 16) + place, values, mask=place < count)
    sync_threads()
    blockwise_barrier(pads, None, rank, RANKS, sem="acq_rel")
    sync_threads()
    for tile in range(first, tl.cdiv(count, BLOCK), step):
        place = tile.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # type: ignore[attr-defined]
        result = tl.zeros((BLOCK,), dtype=tl.float32)
        for peer in tl.static_range(RANKS):
            values = tl.load(table + peer).to(tl.pointer_type(tl.bfloat16))
            values = tl.multiple_of(values, 16)
            result += tl.load(values + place, mask=place < count, other=0.0).to(tl.float32)
        tl.store(total + place, result.to(tl.bfloat16), mask=place < count)
    sync_threads()
    blockwise_barrier(pads, None, rank, RANKS, sem="relaxed")  # nobody writes before all have read


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = torch.empty_like(tensor)
    publish_and_sum[(BLOCKS,)](
        handle.buffer_ptrs_dev,
        handle.signal_pad_ptrs_dev,
        tensor,
        total,
        tensor.numel(),
        dist.get_rank(),
        dist.get_world_size(),
        BLOCK,
    )
    return total
