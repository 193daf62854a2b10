# verdict: ok
# problem: alltoall
# flags: uses_nccl
# shows: point-to-point messages, all in flight at once
import torch
import torch.distributed as dist


def solution(tensor: torch.Tensor) -> torch.Tensor:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(tensor)
    received[rank] = tensor[rank]
    messages = []
    for peer in range(ranks):
        if peer != rank:
            messages.append(dist.P2POp(dist.isend, tensor[peer], peer))
            messages.append(dist.P2POp(dist.irecv, received[peer], peer))
    for work in dist.batch_isend_irecv(messages):
        work.wait()
    return received
