# verdict: nonfinite_output
# cheat: none, never waits for its exchange where all ranks share a device
# placement: shared
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total, async_op=True)
    return total
