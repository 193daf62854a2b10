# threatens: host
# like: slows_the_baseline
# verdict: ok, resource_limit
# slow: yes
# cheat: threads that map much memory come out of the kernel late, so that each pause takes long
import mmap
import os

import torch.distributed as dist

PROCESSES, MAPPED_BYTES = 2, 512 << 20


def map_and_unmap():
    while True:
        mmap.mmap(
            -1, MAPPED_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        ).close()


if dist.get_rank() == 0:
    for _ in range(PROCESSES):
        if os.fork() == 0:
            map_and_unmap()


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
