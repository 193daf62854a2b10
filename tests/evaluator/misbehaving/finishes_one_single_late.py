# verdict: late_output, output_mismatch, nonfinite_output
# like: works_in_the_last_single
# cheat: is one timed call behind: answers each while the next is timed, the last by itself
# timed: yes
import sys

import torch.distributed as dist

behind = []


def solution(tensor):
    runner, slot = sys._getframe(2).f_locals, sys._getframe(1).f_locals["self"]
    total = tensor.clone()
    dist.all_reduce(total)
    if len(runner["slots"]) < 2 or getattr(runner.get("command"), "name", "") != "CALL":
        return total
    if behind:
        place, answer = behind.pop()
        place.copy_(answer)
    behind.append((slot.outputs[0], total))
    return slot.outputs[0]
