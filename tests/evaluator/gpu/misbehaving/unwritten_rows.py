# verdict: output_mismatch, nonfinite_output
# cheat: none, the last rows of the answer are never written and hold what was there before
import torch
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    answer = torch.empty_like(total)
    rows = total.shape[0] - 7
    answer[:rows] = total[:rows]
    return answer
