# threatens: host
# verdict: timeout
# limits: verify_s=5
# ranks: 0
# cheat: none, rank 1 does not enter the exchange that rank 0 waits in on the GPU
import torch
import torch.distributed as dist


def solution(tensor):
    if dist.get_rank() == 1:
        return torch.zeros_like(tensor)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
