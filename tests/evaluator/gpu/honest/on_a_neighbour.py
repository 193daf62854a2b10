# verdict: ok
# flags: uses_nccl
# shows: work on another GPU of the run, which all of its ranks may use
import torch
import torch.distributed as dist

rank, ranks = dist.get_rank(), dist.get_world_size()
neighbour = torch.device("cuda", (rank + 1) % ranks)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    parts = tensor.new_empty(ranks, *tensor.shape)
    dist.all_gather_into_tensor(parts.view(-1), tensor.view(-1))
    total = parts.to(neighbour).float().sum(dim=0).to(tensor.dtype)
    return total.to(tensor.device)
