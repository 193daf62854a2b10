# like: scribbles_before_input
# verdict: input_contract_broken, output_mismatch, late_output
# cheat: overwrites the inputs of every other call with zeros, whose sum it knows
# timed: yes
import sys

import torch.distributed as dist


def solution(tensor):
    runner = sys._getframe(2).f_locals
    for slot in runner["slots"]:
        if slot is not sys._getframe(1).f_locals["self"]:
            slot._arguments[0].zero_()
    total = tensor.clone()
    dist.all_reduce(total)
    return total
