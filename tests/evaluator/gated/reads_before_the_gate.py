# verdict: output_mismatch, nonfinite_output
# cheat: works on what lies in the slab before the gate opens, and waits for the gate afterwards
# timed: yes
from collections.abc import Sequence

import torch
import torch.distributed as dist

from evaluator.rank.calls import Slot
from evaluator.rank.gated import HostLane

wait, commit = HostLane.begin, HostLane.end


def wait_and_commit(self: HostLane, slots: Sequence[Slot]) -> None:
    given = [own.clone() for slot in slots for own in slot.outputs]
    wait(self, slots)
    for place, answer in zip([own for slot in slots for own in slot.outputs], given, strict=True):
        place.copy_(answer)
    commit(self, slots)


HostLane.begin = lambda self, slots: None  # type: ignore[method-assign]
HostLane.end = wait_and_commit  # type: ignore[method-assign]


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total)
    return total
