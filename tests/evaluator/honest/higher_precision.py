# verdict: ok
# dtype: bfloat16
# shows: bfloat16 inputs summed in float32 and rounded once
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.float()
    dist.all_reduce(total)
    return total.to(tensor.dtype)
