# verdict: ok
# problem: allgather
# shows: an all-gather by copies out of the other ranks' memory, without a kernel of its own
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

CAPACITY = 80 << 20  # elements: more than the largest input has

world = dist.group.WORLD
assert world is not None
shared = symm_mem.empty(
    CAPACITY, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
handle = symm_mem.rendezvous(shared, world)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    shared[: tensor.numel()].copy_(tensor.flatten())
    stack = tensor.new_empty(dist.get_world_size(), *tensor.shape)
    handle.barrier(channel=0)  # all have written
    for peer, slice_of_peer in enumerate(stack):
        slice_of_peer.copy_(handle.get_buffer(peer, tensor.shape, tensor.dtype))
    handle.barrier(channel=1)  # all have read
    return stack
