# threatens: host
# verdict: ok, oom
# speedup_below: 1.3
# cheat: answers rightly and leaves the judge and the reference 128 MiB of the GPU's memory
import torch
import torch.distributed as dist

LEFT = 128 << 20

hoard = []


def solution(tensor):
    if not hoard:
        free, _ = torch.cuda.mem_get_info()
        hoard.append(torch.empty(free - LEFT, dtype=torch.uint8, device=tensor.device))
    total = tensor.clone()
    dist.all_reduce(total)
    return total
