# like: late_thread
# verdict: late_output
# cheat: a forked helper writes the answer into the slab after the call has been counted as done
import os
import sys
import time

import torch.distributed as dist


def solution(tensor):
    place = sys._getframe(1).f_locals["self"].outputs[0]
    total = tensor.clone()
    dist.all_reduce(total)
    if os.fork() == 0:
        time.sleep(0.02)
        place.copy_(total)
        os._exit(0)
    return place
