# verdict: shape_mismatch
# like: returns_list
# cheat: none, returns a tuple of two answers where one is asked for
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total, total
