# verdict: timeout
# limits: verify_s=4
# ranks: 1
# cheat: rank 1 never answers; the report must name it
import time

import torch.distributed as dist


def solution(tensor):
    if dist.get_rank() == 1:
        time.sleep(3600)
    return tensor.clone()
