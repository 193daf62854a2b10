# verdict: ok
# backend: triton
# shows: a Triton kernel that reads the other ranks' memory by address
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl

CAPACITY = 80 << 20  # elements: more than the largest input has
BLOCK = 1024

world = dist.group.WORLD
assert world is not None
shared = symm_mem.empty(
    CAPACITY, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
handle = symm_mem.rendezvous(shared, world)


@triton.jit  # type: ignore[untyped-decorator]
def add_all(
    addresses: tl.tensor, total: tl.tensor, count: int, RANKS: tl.constexpr, BLOCK: tl.constexpr
) -> None:
    table = addresses.to(tl.pointer_type(tl.uint64))
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    result = tl.zeros((BLOCK,), dtype=tl.float32)
    for peer in tl.static_range(RANKS):
        values = tl.load(table + peer).to(tl.pointer_type(tl.bfloat16))
        values = tl.multiple_of(values, 16)
        result += tl.load(values + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(total + place, result.to(tl.bfloat16), mask=inside)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    count, total = tensor.numel(), torch.empty_like(tensor)
    shared[:count].copy_(tensor.flatten())
    handle.barrier(channel=0)  # all have written
    grid = (triton.cdiv(count, BLOCK),)
    add_all[grid](handle.buffer_ptrs_dev, total, count, dist.get_world_size(), BLOCK)
    handle.barrier(channel=1)  # all have read
    return total
