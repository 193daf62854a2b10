# verdict: ok
# backend: triton
# at_least_us: 200
# shows: the plain way behind exactly 0.2 ms of sleep on the GPU, which the judge's clock must show
import torch
import torch.distributed as dist
import triton
from triton.language.extra.cuda import globaltimer

SLEEP_NS = 200_000


@triton.jit  # type: ignore[untyped-decorator]
def sleep(nanoseconds: int) -> None:
    began = globaltimer()
    now = began
    while now - began < nanoseconds:
        now = globaltimer()


def solution(tensor: torch.Tensor) -> torch.Tensor:
    sleep[(1,)](SLEEP_NS, num_warps=1)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
