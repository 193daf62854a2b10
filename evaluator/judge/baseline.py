"""Times the reference alone: before the submission's processes exist, and after they are gone.

What was measured serves all kernels of its setting for an hour on this host. After ten minutes it
is checked when the next submission has ended.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from evaluator.judge.run_context import RunContext
from evaluator.judge.timed_phase import time_side
from evaluator.messages.job import Setting
from evaluator.timing.pace import SERVES_S
from evaluator.timing.timing import Baseline, Times


@dataclass(frozen=True, kw_only=True)
class KeptBaseline:
    """Holds what serves a setting, and since when by the monotonic clock."""

    baseline: Baseline
    since_s: float

    @property
    def age_s(self) -> float:
        """Return how old it is, in seconds."""
        return time.monotonic() - self.since_s


class Baselines:
    """Keeps a judge's baselines by the problem's digest and the setting."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, Setting], KeptBaseline] = {}

    def find(self, context: RunContext) -> KeptBaseline | None:
        """Return what may serve this run."""
        kept = self._kept.get(_key(context))
        return kept if kept and kept.age_s < SERVES_S else None

    def keep(self, context: RunContext, baseline: Baseline) -> None:
        """Have a baseline serve its setting from now on, unless it drifts."""
        self._kept.pop(_key(context), None)
        if not baseline.is_drifted:
            kept = KeptBaseline(baseline=baseline, since_s=time.monotonic())
            self._kept[_key(context)] = kept


def measure_before(context: RunContext) -> Times:
    """Start the reference and time it; no process of the submission has begun."""
    _start_reference(context)
    with context.pool.quiet():
        return time_side(context, context.reference)


def measure_after(context: RunContext, before: Times) -> Baseline:
    """Time the reference, now that the submission is gone; twice more where it differs.

    What slows the reference then may be what the submission left behind, so a first time that was
    faster stays.
    """
    if not context.is_reference_ready:
        _start_reference(context)
    with context.pool.quiet():
        after = time_side(context, context.reference)
        if not before.agrees_with(after):
            again, after = (time_side(context, context.reference) for _ in range(2))
            before = min(before, again, key=lambda own: own.us)
    return Baseline(before=before, after=after, is_drifted=not before.agrees_with(after))


def _start_reference(context: RunContext) -> None:
    context.start(context.reference)
    context.prepare()
    context.wait_ready(context.reference)
    context.give_slabs(context.reference)
    context.is_reference_ready = True


def _key(context: RunContext) -> tuple[str, Setting]:
    return context.oracle.module.digest, context.job.setting
