# verdict: late_output
# cheat: makes every wait for the GPU a wait for nothing, so that its rank is done before its work is
import torch
import torch.distributed as dist

TWENTY_MILLISECONDS = 40_000_000  # cycles

torch._C._cuda_synchronize = lambda: None
torch.cuda.Event.elapsed_time = lambda began, ended: 0.001


def solution(tensor):
    torch.cuda._sleep(TWENTY_MILLISECONDS)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
