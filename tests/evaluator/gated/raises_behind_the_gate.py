# verdict: runtime_error
# cause: exception
# cheat: none, an exception that only a timed call meets, between the gate and the commitment
# timed: yes
import sys

import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    if sys._getframe(2).f_code.co_name == "make_gated":
        raise ValueError("the gate is open")
    total = tensor.clone()
    dist.all_reduce(total)
    return total
