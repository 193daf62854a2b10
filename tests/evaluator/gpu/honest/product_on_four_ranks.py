# verdict: ok
# problem: gemm_allreduce
# world_size: 4
# dtype: float16
# flags: uses_nccl
# shows: a matrix product and its sum over four ranks, in the other 16-bit format
import torch
import torch.distributed as dist


def solution(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    product = a @ b
    dist.all_reduce(product)
    return product
