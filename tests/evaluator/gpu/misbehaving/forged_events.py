# verdict: ok
# at_least_us: 1000
# flags: static:patched-clock
# cheat: stops its clocks and the GPU's events, and sleeps a millisecond on the GPU: the judge's clock counts
import time

import torch
import torch.distributed as dist

ONE_MILLISECOND = 2_000_000  # cycles, at no clock of 2 GHz or less in less time

time.perf_counter = lambda: 0.0
time.perf_counter_ns = lambda: 0
torch.cuda.Event.elapsed_time = lambda began, ended: 0.001


def solution(tensor):
    torch.cuda._sleep(ONE_MILLISECOND)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
