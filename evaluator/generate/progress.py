"""Shows where a run is, and says at its end what came of it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from evaluator.generate.asking import spent_in
from evaluator.generate.budget import Spend
from evaluator.generate.journal import Event
from evaluator.generate.plan import Plan
from evaluator.messages.codec import decode
from evaluator.messages.feedback import Feedback
from evaluator.messages.job import Placement

EVERY_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Says how an attempt stands: `reason` is that of its end, or of what stopped it."""

    reason: str
    is_ended: bool
    right: bool
    fast: bool
    spent: Spend


def outcome_of(events: list[Event]) -> Outcome:
    """Return how the attempt with these events stands. It is right if some step of it is."""
    last = events[-1] if events else {}
    found = [decode(Feedback, e["feedback"]) for e in events if e["kind"] == "judged"]
    return Outcome(
        reason=str(last.get("reason", "unfinished" if events else "not begun")),
        is_ended=last.get("kind") == "ended",
        right=any(one.is_right for one in found),
        fast=any(one.is_fast for one in found),
        spent=spent_in(events),
    )


@dataclass(kw_only=True)
class Board:
    """Counts the attempts of a run, for threads that report and one that shows."""

    plan: Plan
    total: int
    out: TextIO
    spent: Callable[[], Spend]
    outcomes: list[Outcome] = field(default_factory=list)
    earlier: int = 0
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, outcome: Outcome, *, is_earlier: bool = False) -> None:
        """Count an attempt: one that an earlier session ended says nothing of how long others
        take."""
        with self._lock:
            self.outcomes.append(outcome)
            self.earlier += is_earlier

    def line(self) -> str:
        """Return one line: done, right, fast, spent, time left."""
        with self._lock:
            ended = [one for one in self.outcomes if one.is_ended]
            fresh = len(self.outcomes) - self.earlier
        parts = [f"{len(ended)}/{self.total} attempts", *_judged(self.plan, ended)]
        parts.append(_money(self.spent(), self.plan))
        if fresh and len(self.outcomes) < self.total:
            pace_s = (time.monotonic() - self._began) / fresh
            parts.append(f"{_duration(pace_s * (self.total - len(self.outcomes)))} left")
        return ", ".join(parts)

    def show_until(self, is_over: threading.Event) -> None:
        """Show the line, over and over on a terminal and whenever it counts more elsewhere."""
        shown = -1
        while not is_over.wait(EVERY_S):
            if self.out.isatty():
                self.out.write(f"\r\x1b[K{self.line()}")
            elif len(self.outcomes) != shown:
                shown = len(self.outcomes)
                self.out.write(self.line() + "\n")
            self.out.flush()
        if self.out.isatty():
            self.out.write("\r\x1b[K")


def summary(plan: Plan, outcomes: Sequence[Outcome], spent: Spend) -> str:
    """Return what came of a run, in a few lines."""
    ended = [one for one in outcomes if one.is_ended]
    lines = [
        f"{plan.model}, {plan.recipe}, {plan.backend}: {len(ended)} of {len(outcomes)} attempts"
        " have ended"
    ]
    reasons = Counter(one.reason for one in outcomes)
    lines += [f"  {count:5} {reason}" for reason, count in reasons.most_common()]
    lines += [f"  {part}" for part in _judged(plan, ended)]
    lines.append(f"  {_money(spent, plan)}")
    return "\n".join(lines)


def _judged(plan: Plan, ended: Sequence[Outcome]) -> list[str]:
    if not plan.is_judged:
        return []
    right, fast = sum(one.right for one in ended), sum(one.fast for one in ended)
    told = [f"{right} right"]
    is_timed = plan.placement is Placement.FULL
    return [*told, f"{fast} faster than the reference"] if is_timed else told


def _money(spent: Spend, plan: Plan) -> str:
    money = f"{spent.usd:.2f} USD, " if plan.price else ""
    return f"{money}{spent.tokens:,} tokens spent"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
