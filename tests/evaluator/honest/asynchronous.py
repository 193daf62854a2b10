# verdict: ok
# shows: two exchanges in flight at once, both waited for
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    half = total.shape[0] // 2
    works = [dist.all_reduce(part, async_op=True) for part in (total[:half], total[half:])]
    for work in works:
        work.wait()
    return total
