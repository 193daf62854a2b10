# verdict: host_unsupported
# backend: triton
# placement: shared
# dtype: bfloat16
# cause: interpreter
# flags: interpreted
# shows: a sum in bfloat16, which the interpreter takes of the words that hold it
import torch
import torch.distributed as dist
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def add(left: tl.tensor, right: tl.tensor, count: int, BLOCK: tl.constexpr) -> None:
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    total = tl.load(left + place, mask=inside) + tl.load(right + place, mask=inside)
    tl.store(left + place, total, mask=inside)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    for part in parts[1:]:
        add[(triton.cdiv(tensor.numel(), 512),)](parts[0], part, tensor.numel(), 512)
    return parts[0]
