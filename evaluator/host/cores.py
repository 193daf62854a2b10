"""Divides processor cores between the judge and the ranks of a timed run.

Short kernels are as fast as their rank launches them, and how fast that is depends on the core and
on who else uses it. So the same core launches for the submission and for the reference, and nobody
who spins shares it. Of two neighbours only one is given to a thread that matters: a virtual machine
often hides that they share a physical core.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

NEIGHBOURS = 2


@dataclass(frozen=True, kw_only=True)
class Cores:
    """Holds processors as the system numbers them, by rank: `launching` is for a rank's main thread
    while it is timed, `helping` for all its others and the oracle's own rank."""

    judge: int
    launching: tuple[int, ...]
    helping: tuple[tuple[int, ...], ...]


def share(world_size: int) -> Cores | None:
    """Divide the processors that this process may use; None where they are too few."""
    return divide(world_size, os.sched_getaffinity(0))


def divide(world_size: int, processors: Iterable[int]) -> Cores | None:
    """Divide these processors between the judge and W ranks; None where they are too few."""
    pairs: dict[int, list[int]] = {}
    for processor in sorted(processors):
        pairs.setdefault(processor // NEIGHBOURS, []).append(processor)
    own = list(pairs.values())
    each = (len(own) - 1) // world_size - 1
    if each < 1:
        return None
    firsts = [pair[0] for pair in own]
    rest = own[world_size + 1 :]
    helping = [rest[rank * each : (rank + 1) * each] for rank in range(world_size)]
    return Cores(
        judge=firsts[0],
        launching=tuple(firsts[1 : world_size + 1]),
        helping=tuple(tuple(chain.from_iterable(pairs)) for pairs in helping),
    )
