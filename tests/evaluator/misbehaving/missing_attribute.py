# like: missing_module
# verdict: import_error
# cheat: none, uses an interface that torch does not have
import torch

all_reduce = torch.distributed.all_reduce_quickly


def solution(tensor):
    return all_reduce(tensor)
