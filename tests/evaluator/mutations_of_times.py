"""Mutations of what keeps a submission from slowing down the reference, or the judge."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from evaluator.host.cgroup import Leaf
from evaluator.judge import process
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing import timing
from tests.evaluator.mutating import replace
from tests.evaluator.tuned_judge import (
    accounting,
    disturbed,
    disturbed_singles,
    guarded,
    upset_once,
)


def no_reference_alone() -> None:
    """What the reference does when the submission has ended changes nothing."""
    disturbed()
    replace(timing.Samples, "is_disturbed", property(lambda _: False))


def four_rounds_decide() -> None:
    """As few rounds of the reference alone are enough, whatever one of them shows."""
    disturbed()
    replace(timing.Samples, "is_settled", property(lambda samples: not samples.is_disturbed))


def single_calls_beside_count() -> None:
    """Nobody asks whether single calls of the reference were slowed down."""
    disturbed_singles()
    replace(timing, "may_hide_merging", lambda _: False)


def first_score_stands() -> None:
    """Single calls of the reference alone decide for good in the first run."""
    upset_once()
    replace(process.Judge, "_judged_for_good", process.Judge._judged)


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
    no_reference_alone,
    four_rounds_decide,
    single_calls_beside_count,
    first_score_stands,
    memory_of_the_dead_is_left,
    oracle_works_beside,
)
