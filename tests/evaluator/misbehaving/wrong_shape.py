# verdict: shape_mismatch
# cheat: none, returns the flattened answer
import torch.distributed as dist


def solution(tensor):
    total = tensor.flatten().clone()
    dist.all_reduce(total)
    return total
