# verdict: ok
# shows: local work in threads that are joined before the answer is given
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

pool = ThreadPoolExecutor(max_workers=2)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = torch.empty_like(tensor)
    half = tensor.shape[0] // 2
    spans = (slice(0, half), slice(half, None))
    list(pool.map(lambda span: total[span].copy_(tensor[span]), spans))
    dist.all_reduce(total)
    return total
