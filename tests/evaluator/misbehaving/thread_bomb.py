# threatens: host
# like: fork_bomb
# verdict: resource_limit
# cheat: starts threads until it is refused; refused it must be
# timed: yes
import threading
import time

import torch.distributed as dist

for threads in range(3000):
    try:
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    except RuntimeError:
        break
else:
    raise RuntimeError("escaped: 3000 threads and no limit")


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
