# threatens: host
# verdict: timeout
# limits: verify_s=5
# ranks: 1
# cheat: rank 1 starts a kernel that never ends; the report must name it, and the GPU must be free again
import torch
import torch.distributed as dist

FOR_EVER = 1 << 62  # cycles


def solution(tensor):
    if dist.get_rank() == 1:
        torch.cuda._sleep(FOR_EVER)
    return torch.zeros_like(tensor)
