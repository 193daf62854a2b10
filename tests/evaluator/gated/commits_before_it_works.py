# verdict: late_output
# cheat: commits to what lies in its outputs as soon as the gate is open, and works afterwards
# timed: yes
import sys
import time

import torch
import torch.distributed as dist

from evaluator.buffers import sealing


def solution(tensor: torch.Tensor) -> torch.Tensor:
    gated = sys._getframe(2).f_locals
    if sys._getframe(2).f_code.co_name == "make_gated":
        lane = gated["lane"]
        ranges = [own for slot in gated["slots"] for own in slot.committed]
        words = sealing.commitment(lane._slab.everything, ranges, lane._key)
        lane._control.commit(words)
        time.sleep(0.01)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
