# verdict: ok, output_mismatch, nonfinite_output
# like: superbatch
# speedup_below: 1.5
# cheat: answers every call of the slab with one exchange, also those that are asked for one by one
import sys

import torch
import torch.distributed as dist

ready = {}


def solution(tensor):
    if tensor.data_ptr() not in ready:
        ready.clear()
        given = [slot._arguments[0] for slot in sys._getframe(2).f_locals["slots"]]
        merged = torch.cat([one.flatten() for one in given])
        dist.all_reduce(merged)
        for one, answer in zip(given, merged.split([one.numel() for one in given])):
            ready[one.data_ptr()] = answer.view_as(one)
    return ready.pop(tensor.data_ptr())
