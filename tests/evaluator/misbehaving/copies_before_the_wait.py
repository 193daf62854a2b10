# like: missing_wait
# verdict: nonfinite_output
# cheat: none, copies the result of an exchange before it waits for it
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    work = dist.all_reduce(total, async_op=True)
    answer = total.clone()
    work.wait()
    return answer
