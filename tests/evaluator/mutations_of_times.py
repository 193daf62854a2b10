"""Mutations of what keeps a submission from slowing down the reference, or the judge."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from evaluator.host.cgroup import Leaf
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing.timing import Baseline, Times
from tests.evaluator.mutating import replace
from tests.evaluator.tuned_judge import (
    accounting,
    guarded,
    slow_ever_after,
    slow_once_after,
)


def references_always_agree() -> None:
    """Nobody times the reference again, however far before and after are apart."""
    slow_once_after()
    replace(Times, "agrees_with", lambda self, other: True)


def slower_reference_counts() -> None:
    """Where times of the reference differ to the end, the slower ones are the score."""
    slow_ever_after()
    replace(Baseline, "times", property(lambda self: self.after or self.before))


def memory_of_the_dead_is_left() -> None:
    """The reference is timed alone while the kernel still frees what a submission had."""
    accounting()
    replace(Leaf, "settle", lambda self: None)


def oracle_works_beside() -> None:
    """A submission may run while the judge makes inputs and compares."""
    guarded()
    paused = RankGroup.paused

    @contextlib.contextmanager
    def paused_for_snapshots(self: RankGroup) -> Iterator[None]:
        with paused(self):
            pass
        yield

    replace(RankGroup, "paused", paused_for_snapshots)


OF_TIMES: tuple[Callable[[], None], ...] = (
    references_always_agree,
    slower_reference_counts,
    memory_of_the_dead_is_left,
    oracle_works_beside,
)
