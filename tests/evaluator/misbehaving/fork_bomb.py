# threatens: host
# verdict: resource_limit
# cheat: forks until it is refused; refused it must be, long before the host feels it
# timed: yes
import os
import time

import torch.distributed as dist

if os.environ.get("RANK", "0") == "0":
    for forks in range(3000):
        try:
            if os.fork() == 0:
                time.sleep(3600)
                os._exit(0)
        except OSError:
            break
    else:
        raise RuntimeError("escaped: 3000 processes and no limit")


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
