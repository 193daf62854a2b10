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
    sums = [grad.float().abs().pow(norm_type).sum() for grad in dense + expert]
    total = torch.stack(sums).sum()
    dist.all_reduce(total)
    total_norm = total.pow(1 / norm_type)
    factor = (max_norm / total_norm).clamp(max=1.0)
    for grad in dense + expert:
        grad.mul_(factor)
    return total_norm
