# like: last_element_wrong
# verdict: output_mismatch
# cheat: does not compute the last hundredth of the elements
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    flat = total.view(-1)
    flat[flat.numel() - max(1, flat.numel() // 100) :] = 0
    return total
