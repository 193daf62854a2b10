# threatens: host
# verdict: resource_limit
# cause: processes
# cheat: starts threads until it is refused, and ends them at once, so that nobody sees them
import threading
import time

import torch.distributed as dist


def solution(tensor):
    go = threading.Event()
    try:
        for _ in range(3000):
            threading.Thread(target=go.wait, daemon=True).start()
    except RuntimeError:
        pass
    go.set()
    time.sleep(0.1)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
