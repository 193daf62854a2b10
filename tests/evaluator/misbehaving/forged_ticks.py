# verdict: late_output
# cheat: finds the control page in its caller's frame and ticks before it has worked
import sys
import time

import torch.distributed as dist


def solution(tensor):
    sys._getframe(2).f_locals["control"].done()
    time.sleep(0.02)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
