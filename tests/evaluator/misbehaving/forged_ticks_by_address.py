# verdict: late_output
# like: forged_ticks
# flags: static:ctypes
# cheat: finds the control page in /proc/self/maps and ticks by address before it has worked
import ctypes
import time

import torch.distributed as dist
from evaluator.buffers.control_page import DONE, GO


def control_page():
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "memfd:" in line and "control" in line:
                return int(line.split("-")[0], 16)
    raise RuntimeError("no control page")


def solution(tensor):
    page = control_page()
    given = ctypes.c_uint64.from_address(page + GO * 8).value
    ctypes.c_uint64.from_address(page + DONE * 8).value = given
    time.sleep(0.02)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
