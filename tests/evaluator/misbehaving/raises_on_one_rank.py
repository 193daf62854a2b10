# like: raises
# verdict: runtime_error
# ranks: 1
# cheat: rank 1 raises while rank 0 waits for it in a collective: the report must name rank 1
import torch.distributed as dist


def solution(tensor):
    if dist.get_rank() == 1:
        raise ValueError("only rank 1 fails")
    total = tensor.clone()
    dist.all_reduce(total)
    return total
