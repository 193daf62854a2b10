# verdict: runtime_error
# like: returns_list
# cheat: none, forgets to return
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
