# like: skipped_store
# verdict: late_output
# cheat: writes the first half of the output region itself and leaves the rest
import sys

import torch.distributed as dist


def solution(tensor):
    place = sys._getframe(1).f_locals["self"].outputs[0]
    total = tensor.clone()
    dist.all_reduce(total)
    rows = total.shape[0] // 2
    place[:rows] = total[:rows]
    return place
