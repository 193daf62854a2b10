# like: pass_through
# verdict: output_mismatch
# cheat: multiplies its own input by the world size instead of communicating
import torch.distributed as dist


def solution(tensor):
    return tensor * dist.get_world_size()
