# verdict: host_unsupported
# backend: triton
# placement: shared
# cause: interpreter
# flags: interpreted
# limits: verify_s=6
# slow: yes
# shows: blocks of a rank that wait for each other, which the interpreter runs one by one
import torch
import torch.distributed as dist
import triton
import triton.language as tl

arrived = torch.zeros(1, dtype=torch.int32)


@triton.jit  # type: ignore[untyped-decorator]
def wait_for_all(arrived: tl.tensor) -> None:
    tl.atomic_add(arrived, 1, sem="release")
    while tl.atomic_add(arrived, 0, sem="acquire") < tl.num_programs(0):
        pass


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total)
    wait_for_all[(2,)](arrived.zero_())
    return total
