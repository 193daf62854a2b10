# verdict: output_mismatch
# cheat: none, a missing barrier: reads the other ranks' memory before they have written it
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

TEN_MILLISECONDS = 20_000_000  # cycles

shared = symm_mem.empty(
    8 << 20, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
handle = symm_mem.rendezvous(shared, dist.group.WORLD)
shared.zero_()


def solution(tensor):
    if dist.get_rank() == 1:
        torch.cuda._sleep(TEN_MILLISECONDS)
    shared[: tensor.numel()].copy_(tensor.flatten())
    peers = range(dist.get_world_size())
    parts = [handle.get_buffer(peer, tensor.shape, tensor.dtype).float() for peer in peers]
    return torch.stack(parts).sum(dim=0).to(tensor.dtype)
