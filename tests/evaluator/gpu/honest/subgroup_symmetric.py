# verdict: ok
# problem: clip_grad_norm_ep
# world_size: 4
# shows: symmetric memory of a subgroup, and arguments changed in place on a mesh of two axes
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

shared = symm_mem.empty(
    1, dtype=torch.float32, device=torch.device("cuda", torch.cuda.current_device())
)


def sum_of_powers(grads: list[torch.Tensor], power: float) -> torch.Tensor:
    return torch.stack([grad.float().abs().pow(power).sum() for grad in grads]).sum()


def summed(value: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    symm_mem.rendezvous(shared, group)  # once; then it finds what it has made
    shared.copy_(value)
    total: torch.Tensor = torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", group.group_name)
    return total[0]


def solution(
    dense: list[torch.Tensor],
    expert: list[torch.Tensor],
    max_norm: float,
    norm_type: float,
    ep_size: int,
    *groups: dist.ProcessGroup | None,
) -> torch.Tensor:
    fsdp_group, ep_fsdp_group, ep_group = groups
    for grad in expert:
        grad.div_(ep_size)
    dense_sum, expert_sum = sum_of_powers(dense, norm_type), sum_of_powers(expert, norm_type)
    dist.all_reduce(dense_sum, group=fsdp_group)
    if ep_fsdp_group is not None:
        expert_sum = summed(expert_sum, ep_fsdp_group)
    if ep_group is not None:
        dist.all_reduce(expert_sum, group=ep_group)
    total_norm = (dense_sum + expert_sum).pow(1 / norm_type)
    factor = (max_norm / total_norm).clamp(max=1.0)
    for grad in dense + expert:
        grad.mul_(factor)
    return total_norm
