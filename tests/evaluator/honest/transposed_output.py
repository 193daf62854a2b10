# verdict: ok
# shows: an answer whose memory is not contiguous
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.t().contiguous()
    dist.all_reduce(total)
    return total.t()
