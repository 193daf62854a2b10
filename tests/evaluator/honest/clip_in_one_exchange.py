# problem: clip_grad_norm_ep
# world_size: 4
# verdict: ok
# shows: arguments changed in place as the problem asks, numbers and groups as arguments
import torch
import torch.distributed as dist


def solution(
    dense: list[torch.Tensor],
    expert: list[torch.Tensor],
    max_norm: float,
    norm_type: float,
    ep_size: int,
    *groups: dist.ProcessGroup | None,
) -> torch.Tensor:
    for grad in expert:
        grad.div_(ep_size)
    sums = [_power_sum(grads, norm_type) for grads in (dense, expert)]
    every = sums[0].new_empty(2 * dist.get_world_size())
    dist.all_gather_into_tensor(every, torch.stack(sums))
    every = every.view(-1, 2)
    total = every[_ranks(groups[0]), 0].sum() + every[_ranks(*groups[1:]), 1].sum()
    total_norm = total.pow(1 / norm_type)
    factor = (max_norm / total_norm).clamp(max=1.0)
    for grad in dense + expert:
        grad.mul_(factor)
    return total_norm


def _power_sum(grads: list[torch.Tensor], norm_type: float) -> torch.Tensor:
    return torch.stack([grad.float().abs().pow(norm_type).sum() for grad in grads]).sum()


def _ranks(*groups: dist.ProcessGroup | None) -> list[int]:
    given = [group for group in groups if group is not None]
    if len(given) == 2:
        return list(range(dist.get_world_size()))
    return dist.get_process_group_ranks(given[0]) if given else [dist.get_rank()]
