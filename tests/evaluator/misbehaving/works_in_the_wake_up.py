# verdict: ok, output_mismatch, nonfinite_output
# like: works_before_go
# speedup_below: 1.5
# cheat: answers a whole burst while the judge only wakes it, before the clock has started
import sys

import torch
import torch.distributed as dist

installed = False


def answer_ahead(slots):
    given = [slot._arguments[0].flatten() for slot in slots]
    merged = torch.cat(given)
    dist.all_reduce(merged)
    for slot, answer in zip(slots, merged.split([one.numel() for one in given])):
        slot.outputs[0].copy_(answer.view_as(slot.outputs[0]))


def install(control):
    real = type(control).done

    def done(elapsed_ns):
        runner = sys._getframe(1).f_locals
        if runner["slots"] and runner["command"].name != "CALL":
            answer_ahead(runner["slots"])
        real(control, elapsed_ns)

    control.done = done


def solution(tensor):
    global installed
    runner = sys._getframe(2).f_locals
    place = sys._getframe(1).f_locals["self"].outputs[0]
    if not installed:
        install(runner["control"])
        installed = True
    elif not place.isnan().any():
        return place
    total = tensor.clone()
    dist.all_reduce(total)
    return total
