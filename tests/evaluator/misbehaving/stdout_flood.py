# verdict: ok
# cheat: prints 8 MiB on import, before behaving: the log must be cut, the judge must not choke
import sys

import torch.distributed as dist

for _ in range(8):
    sys.stdout.write("x" * (1 << 20))
sys.stdout.flush()


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
