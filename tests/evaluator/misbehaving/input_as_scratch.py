# verdict: input_contract_broken
# cheat: the answer is right, but the input was used as scratch memory
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    tensor.zero_()
    return total
