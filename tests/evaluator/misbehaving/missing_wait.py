# verdict: nonfinite_output
# cheat: returns before its exchange is complete: rank 1 arrives late and nobody waits
import time

import torch.distributed as dist

pending = []


def solution(tensor):
    total = tensor.clone()
    if dist.get_rank() == 1:
        time.sleep(0.002)
    pending.append(dist.all_reduce(total, async_op=True))
    return total
