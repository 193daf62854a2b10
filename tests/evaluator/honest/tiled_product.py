# like: asynchronous
# problem: gemm_allreduce
# verdict: ok
# shows: a product in two tiles, the first reduced while the second is computed
import torch
import torch.distributed as dist


def solution(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    half = a.shape[0] // 2
    upper = a[:half] @ b
    work = dist.all_reduce(upper, async_op=True)
    lower = a[half:] @ b
    dist.all_reduce(lower)
    work.wait()
    return torch.cat([upper, lower])
