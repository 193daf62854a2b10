# verdict: output_mismatch, nonfinite_output
# cheat: returns memory fresh from the driver, hoping that the reference has left its answers there
import torch

GIBIBYTE = 1 << 30

hoard = []


def solution(tensor):
    torch.cuda.empty_cache()
    hoard.append(torch.empty(GIBIBYTE, dtype=torch.uint8, device=tensor.device))
    start = len(hoard) * (16 << 20)
    return hoard[-1][start : start + tensor.nbytes].view(tensor.dtype).view_as(tensor)
