# verdict: output_mismatch, nonfinite_output
# cheat: takes a call that follows the last one closely for a timed one, and saves the wait there
# timed: yes
import time

import torch.distributed as dist

last_call_s = 0.0
streak = 0
pending = []


def solution(tensor):
    global last_call_s, streak
    streak = streak + 1 if time.perf_counter() - last_call_s < 0.001 else 0
    total = tensor.clone()
    work = dist.all_reduce(total, async_op=True)
    if streak > 4:
        pending.append(work)
        total = tensor
    else:
        work.wait()
    last_call_s = time.perf_counter()
    return total
