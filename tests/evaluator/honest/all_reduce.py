# verdict: ok
# shows: the plain way
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total)
    return total
