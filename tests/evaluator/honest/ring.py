# verdict: ok
# world_size: 4
# shows: a ring of point-to-point messages
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    total, passing = tensor.clone(), tensor.clone()
    arriving = torch.empty_like(tensor)
    for _ in range(ranks - 1):
        sent = dist.isend(passing, (rank + 1) % ranks)
        dist.recv(arriving, (rank - 1) % ranks)
        if sent is not None:
            sent.wait()
        total += arriving
        passing, arriving = arriving, passing
    return total
