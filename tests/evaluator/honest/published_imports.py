# verdict: ok
# shows: the import that published PKB kernels make, unused
import torch
import torch.distributed as dist
from utils.cuda_helpers import compile_cuda_extension  # type: ignore[import-not-found]


def solution(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_cuda:
        raise RuntimeError(f"no CUDA kernel here for {compile_cuda_extension}")
    total = tensor.clone()
    dist.all_reduce(total)
    return total
