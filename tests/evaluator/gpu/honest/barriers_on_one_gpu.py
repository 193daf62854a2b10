# verdict: ok
# shows: symmetric memory of four ranks on one GPU, with a barrier on either side of the reads
# placement: shared
# world_size: 4
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

world = dist.group.WORLD
assert world is not None
shared = symm_mem.empty(
    8 << 20, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
handle = symm_mem.rendezvous(shared, world)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    shared[: tensor.numel()].copy_(tensor.flatten())
    handle.barrier(channel=0)
    peers = range(dist.get_world_size())
    parts = [handle.get_buffer(peer, tensor.shape, tensor.dtype).float() for peer in peers]
    total = torch.stack(parts).sum(dim=0).to(tensor.dtype)
    handle.barrier(channel=0)
    return total
