# like: hangs_on_one_rank
# verdict: timeout, runtime_error
# limits: verify_s=4
# cheat: none, rank 0 enters an all-reduce and rank 1 a barrier
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    if dist.get_rank() == 0:
        dist.all_reduce(total)
    else:
        dist.barrier()
    return total
