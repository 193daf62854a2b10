# verdict: ok
# shows: one preallocated answer per shape, returned again by every call
import torch
import torch.distributed as dist

buffers: dict[torch.Size, torch.Tensor] = {}


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = buffers.setdefault(tensor.shape, torch.empty_like(tensor))
    total.copy_(tensor)
    dist.all_reduce(total)
    return total
