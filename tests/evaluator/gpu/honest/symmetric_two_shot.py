# verdict: ok
# world_size: 4
# dtype: float32
# shows: symmetric memory on four ranks, each of which adds up a part and writes it to all
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

CAPACITY = 80 << 20  # elements: more than the largest input has

world = dist.group.WORLD
assert world is not None
shared = symm_mem.empty(
    CAPACITY, dtype=torch.float32, device=torch.device("cuda", torch.cuda.current_device())
)
symm_mem.rendezvous(shared, world)
name = world.group_name


def solution(tensor: torch.Tensor) -> torch.Tensor:
    count, unit = tensor.numel(), 16 * dist.get_world_size()
    own = shared[: -(-count // unit) * unit]  # the same number of whole words for every rank
    own[:count].copy_(tensor.flatten())
    torch.ops.symm_mem.two_shot_all_reduce_(own, "sum", name)
    return own[:count].clone().view_as(tensor)
