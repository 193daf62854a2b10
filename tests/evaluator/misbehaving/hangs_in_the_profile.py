# verdict: ok
# flags: profile_hung
# cheat: hangs once it is recorded, when its verdict is known already
# like: floods_the_profile
import time

import torch
import torch.distributed as dist


def solution(tensor):
    if torch.autograd._profiler_enabled():
        time.sleep(3600)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
