# verdict: nonfinite_output
# like: nan_answer
# cheat: none, one element of an otherwise right answer is NaN
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    total.view(-1)[-1] = float("nan")
    return total
