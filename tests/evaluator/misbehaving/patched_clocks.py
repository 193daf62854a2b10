# like: forged_ticks
# verdict: ok
# at_least_us: 1000
# cheat: stops every clock of its process and sleeps a millisecond per call: the judge's clock counts
import time

import torch.distributed as dist

for name in ("time", "monotonic", "perf_counter", "process_time"):
    setattr(time, name, lambda: 0.0)
    setattr(time, name + "_ns", lambda: 0)


def solution(tensor):
    time.sleep(0.001)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
