# verdict: runtime_error
# cheat: none, forgets to return
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
