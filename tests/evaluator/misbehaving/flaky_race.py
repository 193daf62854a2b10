# verdict: output_mismatch
# cheat: none, a missing wait: one answer in five is read before it is complete
# timed: yes
import secrets

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    if secrets.randbelow(5) == 0:
        return tensor.clone()
    return total
