# verdict: ok
# flags: uses_nccl
# shows: the reference's own way, which is no faster than the reference
# speedup_below: 1.3
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total)
    return total
