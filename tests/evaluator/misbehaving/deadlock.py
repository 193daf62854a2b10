# like: hangs_on_one_rank
# verdict: timeout
# limits: verify_s=4
# cheat: none, both ranks wait to receive before they send
import torch
import torch.distributed as dist


def solution(tensor):
    peer = 1 - dist.get_rank()
    theirs = torch.empty_like(tensor)
    dist.recv(theirs, src=peer)
    dist.send(tensor, dst=peer)
    return tensor + theirs
