# verdict: ok
# log: rank 1 of 2
# shows: a line of log per rank
import sys

import torch
import torch.distributed as dist

sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()}\n")


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total)
    return total
