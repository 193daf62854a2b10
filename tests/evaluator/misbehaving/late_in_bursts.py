# verdict: late_output
# cheat: behaves call by call; in a burst it reports done first and works afterwards
# like: works_in_the_last_single
# timed: yes
import sys
import time

import torch.distributed as dist


def solution(tensor):
    runner = sys._getframe(2).f_locals
    if len(runner["indices"]) > 1:
        runner["control"].done(1)
        time.sleep(0.005)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
