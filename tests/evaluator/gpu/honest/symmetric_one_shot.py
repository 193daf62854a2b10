# verdict: ok
# shows: symmetric memory, where every rank reads all others' inputs and adds them up
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

CAPACITY = 80 << 20  # elements: more than the largest input has

world = dist.group.WORLD
assert world is not None
shared = symm_mem.empty(
    CAPACITY, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
symm_mem.rendezvous(shared, world)
name = world.group_name


def solution(tensor: torch.Tensor) -> torch.Tensor:
    count = tensor.numel()
    own = shared[: -(-count // 8) * 8]  # whole words of 16 bytes
    own[:count].copy_(tensor.flatten())
    total: torch.Tensor = torch.ops.symm_mem.one_shot_all_reduce(own, "sum", name)
    return total[:count].view_as(tensor)
