# verdict: runtime_error
# cheat: none, returns nested lists of numbers in place of a tensor
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total.tolist()
