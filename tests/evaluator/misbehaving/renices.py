# verdict: ok
# cheat: claims a better priority, a real-time class and every core; yields are harmless
import os

import torch.distributed as dist

try:
    os.nice(-10)
except OSError:
    pass
else:
    raise RuntimeError("escaped: raised its own priority")
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
except OSError:
    pass
else:
    raise RuntimeError("escaped: runs in a real-time class")
os.nice(5)
try:
    os.sched_setaffinity(0, {0})
except OSError:
    pass


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
