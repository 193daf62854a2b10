# verdict: ok
# shows: waits for the last exchange alone, which NCCL ends after those before it
# placement: shared
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    work = None
    for part in total.chunk(2):
        work = dist.all_reduce(part, async_op=True)
    if work is not None:
        work.wait()
    return total
