# like: rank_zero_only
# verdict: output_mismatch
# world_size: 4
# cheat: the last rank contributes nothing and only receives
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    if dist.get_rank() == dist.get_world_size() - 1:
        total.zero_()
    dist.all_reduce(total)
    return total
