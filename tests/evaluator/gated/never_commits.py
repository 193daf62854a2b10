# verdict: timeout
# limits: timed_s=5
# cheat: does its work and never says so, so that the judge waits for ever
# timed: yes
import torch
import torch.distributed as dist

from evaluator.rank.gated import HostLane

HostLane.end = lambda self, slots: None  # type: ignore[method-assign]


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total)
    return total
