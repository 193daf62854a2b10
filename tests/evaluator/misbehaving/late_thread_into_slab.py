# like: late_thread
# verdict: late_output
# cheat: hands the output region itself back unwritten, and lets a thread fill it in later
import sys
import threading
import time

import torch.distributed as dist


def solution(tensor):
    runner = sys._getframe(2).f_locals
    place = sys._getframe(1).f_locals["self"].outputs[0]

    def work():
        time.sleep(0.02)
        total = tensor.clone()
        dist.all_reduce(total)
        place.copy_(total)

    threading.Thread(target=work, daemon=True).start()
    return place
