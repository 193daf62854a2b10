# like: ring
# problem: alltoall
# verdict: ok
# shows: pairwise exchanges, each rank with another part
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    answer = torch.empty_like(tensor)
    answer[rank] = tensor[rank]
    works = [dist.isend(tensor[p].contiguous(), p) for p in range(ranks) if p != rank]
    for peer in range(ranks):
        if peer != rank:
            dist.recv(answer[peer], peer)
    for work in works:
        if work is not None:
            work.wait()
    return answer
