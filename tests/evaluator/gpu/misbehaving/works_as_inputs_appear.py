# verdict: ok, output_mismatch, nonfinite_output
# speedup_below: 1.5
# flags: static:frames
# cheat: watches the slab on the GPU and answers a whole burst as soon as its inputs appear, before the clock
import sys

import torch
import torch.distributed as dist

known = {}
ready = {}


def marks(slots):
    return torch.stack([slot._arguments[0].view(-1)[-1] for slot in slots]).tolist()


def answer_ahead(slots):
    given = [slot._arguments[0].flatten() for slot in slots]
    merged = torch.cat(given)
    dist.all_reduce(merged)
    ready.clear()
    for slot, answer in zip(slots, merged.split([one.numel() for one in given])):
        ready[slot._arguments[0].data_ptr()] = answer.view_as(slot._arguments[0])
    known["marks"] = marks(slots)


def all_fresh(slots):
    old = known.get("marks")
    return old and len(old) == len(slots) and all(a != b for a, b in zip(old, marks(slots)))


def watch(control, frame):
    real = type(control).wait_go

    def wait_go(**settings):
        while control._words[0] <= control._sequence:
            slots = frame.f_locals["slots"]
            if len(slots) > 1 and all_fresh(slots):
                answer_ahead(slots)
        return real(control, **settings)

    control.wait_go = wait_go


def solution(tensor):
    frame = sys._getframe(2)
    slots = frame.f_locals["slots"]
    if len(slots) > 1 and "control" in frame.f_locals:
        if "marks" not in known or len(known["marks"]) != len(slots):
            watch(frame.f_locals["control"], frame)
            answer_ahead(slots)
        elif all_fresh(slots):
            answer_ahead(slots)
        return ready[tensor.data_ptr()]
    total = tensor.clone()
    dist.all_reduce(total)
    return total
