# verdict: ok, output_mismatch, nonfinite_output
# speedup_below: 1.5
# cheat: watches the slab and answers a call as soon as its inputs appear, before the clock starts
import sys

import torch
import torch.distributed as dist

marks = {}
ready = {}


def mark(slot):
    return slot._arguments[0].view(torch.int32).view(-1)[-1].item()


def answer_ahead(slots):
    """Every rank meets the same new inputs, one call after the other."""
    for slot in slots:
        tensor = slot._arguments[0]
        now = mark(slot)
        if marks.get(tensor.data_ptr(), now) != now:
            total = tensor.clone()
            dist.all_reduce(total)
            ready[tensor.data_ptr()] = total
        marks[tensor.data_ptr()] = now


def watch(control, frame):
    real = type(control).wait_go

    def wait_go(**settings):
        marks.clear()
        while control._words[0] <= control._sequence:
            if len(slots := frame.f_locals["slots"]) > 1:
                answer_ahead(slots)
        return real(control, **settings)

    control.wait_go = wait_go


def solution(tensor):
    frame = sys._getframe(2)
    if frame.f_code.co_name == "run_rank" and "wait_go" not in vars(frame.f_locals["control"]):
        watch(frame.f_locals["control"], frame)
    if tensor.data_ptr() in ready:
        return ready.pop(tensor.data_ptr())
    total = tensor.clone()
    dist.all_reduce(total)
    return total
