# verdict: output_mismatch, nonfinite_output
# timed: yes
# cheat: none, a missing barrier at the end: the next call of a burst overwrites what a peer still reads
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

THREE_MILLISECONDS = 6_000_000  # cycles

shared = symm_mem.empty(
    8 << 20, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
handle = symm_mem.rendezvous(shared, dist.group.WORLD)


def solution(tensor):
    shared[: tensor.numel()].copy_(tensor.flatten())
    handle.barrier(channel=0)
    if dist.get_rank() == 1:
        torch.cuda._sleep(THREE_MILLISECONDS)
    peers = range(dist.get_world_size())
    parts = [handle.get_buffer(peer, tensor.shape, tensor.dtype).float() for peer in peers]
    return torch.stack(parts).sum(dim=0).to(tensor.dtype)
