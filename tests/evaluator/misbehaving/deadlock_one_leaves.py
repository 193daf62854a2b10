# like: hangs_on_one_rank
# verdict: timeout
# limits: verify_s=4
# cause: deadlock
# ranks: 0
# cheat: none, rank 1 has left when rank 0 comes to the barrier
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        dist.barrier()
    return total
