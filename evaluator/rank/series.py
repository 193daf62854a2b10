"""Makes calls back to back, as the judge's race screen asks: one rank late, or ranks met between
them.

In a submission's process, so a rank may leave out the delay: then it hides its own race.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
import torch.distributed as dist

from evaluator.rank.calls import Slot

PROBE_CYCLES, PROBES = 1_000_000, 3


def make_series(
    slots: Sequence[Slot], plan: Mapping[str, Any], rank: int, device: torch.device
) -> None:
    """Make the calls one after the other, without a look at the device between them.

    `plan` names for each call the rank that is late, or None, by how much (`late_s`), and whether
    all ranks meet before each call (`spaced`).
    """
    if device.type == "cuda" and any(late is not None for late in plan["late"]):
        _cycles_a_second(device)
    for slot, late_rank in zip(slots, plan["late"], strict=True):
        if plan["spaced"]:
            meet(device)
        if late_rank == rank:
            be_late(device, plan["late_s"])
        slot.call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def meet(device: torch.device) -> None:
    """Wait until every rank has done on its device what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    dist.barrier()


def be_late(device: torch.device, seconds: float) -> None:
    """Have the device do nothing for so long before it does what comes next."""
    if device.type == "cuda":
        cuda: Any = torch.cuda
        cuda._sleep(int(seconds * _cycles_a_second(device)))
    else:
        time.sleep(seconds)


@cache
def _cycles_a_second(device: torch.device) -> float:
    """Measure how fast a GPU counts; where others take their turns on it, the least time counts."""
    cuda: Any = torch.cuda
    took_ms: list[float] = []
    for _ in range(PROBES):
        began, ended = (cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        cuda._sleep(PROBE_CYCLES)
        ended.record()
        torch.cuda.synchronize(device)
        took_ms.append(began.elapsed_time(ended))
    return PROBE_CYCLES / max(min(took_ms), 1e-3) * 1e3
