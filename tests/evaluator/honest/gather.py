# problem: allgather
# verdict: ok
# shows: an answer larger than its input
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    gathered = tensor.new_empty(dist.get_world_size(), *tensor.shape)
    dist.all_gather(list(gathered.unbind()), tensor)
    return gathered
