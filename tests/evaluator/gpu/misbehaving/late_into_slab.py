# verdict: late_output
# flags: static:frames
# cheat: hands the output region itself back, says it is done, and writes it a fifth of a second later
import sys

import torch
import torch.distributed as dist

FIFTH_OF_A_SECOND = 400_000_000  # cycles

side = torch.cuda.Stream()
torch._C._cuda_synchronize = lambda: torch.cuda.current_stream().synchronize()


def solution(tensor):
    place = sys._getframe(1).f_locals["self"].outputs[0]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(FIFTH_OF_A_SECOND)
        total = tensor.clone()
        dist.all_reduce(total)
        place.copy_(total)
    return place
