# verdict: output_mismatch
# backend: triton
# placement: shared
# dtype: float32
# flags: interpreted
# cheat: leaves out the last rank
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl

BLOCK = 512

world = dist.group.WORLD
assert world is not None
shared = symm_mem.empty(1 << 16, dtype=torch.float32, device=torch.device("cpu"))
handle = symm_mem.rendezvous(shared, world)


@triton.jit  # type: ignore[untyped-decorator]
def add_all(
    buffers: tl.tensor, total: tl.tensor, count: int, RANKS: tl.constexpr, BLOCK: tl.constexpr
) -> None:
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    result = tl.zeros((BLOCK,), dtype=tl.float32)
    for peer in tl.static_range(RANKS - 1):
        theirs = tl.load(buffers.to(tl.pointer_type(tl.int64)) + peer)
        values = tl.load(
            theirs.to(tl.pointer_type(tl.float32)) + place, mask=place < count, other=0.0
        )
        result += values.to(tl.float32)
    tl.store(total + place, result.to(tl.float32), mask=place < count)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    count, total = tensor.numel(), torch.empty_like(tensor)
    shared[:count].copy_(tensor.flatten())
    handle.barrier(channel=0)
    add_all[(triton.cdiv(count, BLOCK),)](
        handle.buffer_ptrs_dev, total, count, dist.get_world_size(), BLOCK
    )
    handle.barrier(channel=1)
    return total
