# threatens: host
# like: fork_bomb
# verdict: ok
# cheat: opens files until it is refused; refused it must be
import os

import torch.distributed as dist

opened = []
try:
    for _ in range(100_000):
        opened.append(os.open("/dev/null", os.O_RDONLY))
    raise RuntimeError("escaped: 100000 descriptors and no limit")
except OSError:
    for fd in opened:
        os.close(fd)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
