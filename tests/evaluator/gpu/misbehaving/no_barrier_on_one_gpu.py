# verdict: output_mismatch
# cause: race_between_calls
# cheat: none, no barrier behind the reads: four ranks on one GPU are right in every call by itself
# placement: shared
# world_size: 4
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

shared = symm_mem.empty(
    8 << 20, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
handle = symm_mem.rendezvous(shared, dist.group.WORLD)


def solution(tensor):
    shared[: tensor.numel()].copy_(tensor.flatten())
    handle.barrier(channel=0)
    peers = range(dist.get_world_size())
    parts = [handle.get_buffer(peer, tensor.shape, tensor.dtype).float() for peer in peers]
    return torch.stack(parts).sum(dim=0).to(tensor.dtype)
