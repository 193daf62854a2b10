# like: wrong_shape
# verdict: shape_mismatch
# cheat: returns one row, which would broadcast over the expected answer
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total[:1]
