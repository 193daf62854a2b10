# like: ring
# verdict: ok
# world_size: 4
# shows: more ranks than cores
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total)
    return total
