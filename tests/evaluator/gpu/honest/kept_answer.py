# verdict: ok
# flags: uses_nccl
# shows: one answer per shape, written anew and returned by every call, two exchanges in flight
import torch
import torch.distributed as dist

answers: dict[torch.Size, torch.Tensor] = {}


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = answers.setdefault(tensor.shape, torch.empty_like(tensor))
    total.copy_(tensor)
    half = total.shape[0] // 2
    works = [dist.all_reduce(part, async_op=True) for part in (total[:half], total[half:])]
    for work in works:
        work.wait()
    return total
