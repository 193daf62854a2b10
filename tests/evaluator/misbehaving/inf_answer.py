# verdict: nonfinite_output
# like: nan_answer
# cheat: answers infinity, so that a relative error is not a number
import torch


def solution(tensor):
    return torch.full_like(tensor, float("inf"))
