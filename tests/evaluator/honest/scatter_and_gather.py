# like: all_reduce
# verdict: ok
# shows: an all-reduce in two halves, with padding for sizes that the ranks do not divide
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    ranks = dist.get_world_size()
    share = -(-tensor.numel() // ranks)
    padded = tensor.new_zeros(ranks * share)
    padded[: tensor.numel()] = tensor.flatten()
    mine = tensor.new_empty(share)
    dist.reduce_scatter_tensor(mine, padded)
    dist.all_gather_into_tensor(padded, mine)
    return padded[: tensor.numel()].view_as(tensor)
