"""Says how long the judge has really waited for ranks, and how much others slowed them down."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evaluator.diagnosis import watch
from evaluator.host import load
from evaluator.messages.faults import EvaluatorError

AWAY_S = watch.LATE_LOOKS * watch.LOOK_EVERY_S


@dataclass(kw_only=True)
class WaitClock:
    """Follows one wait, by the same clock as `began_s`. In `away_s` of it the judge was stopped, or
    its whole host: it neither looked nor used a processor.

    `used_s` tells what the side has had of processors so far; None where nobody counts all of it.
    """

    began_s: float
    used_s: Callable[[], float | None]
    away_s: float = 0.0
    _seen_s: float = 0.0
    _own_s: float = field(default_factory=time.thread_time)
    _others: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._seen_s = self.began_s

    def __str__(self) -> str:
        return f"the judge was away for {self.away_s:.0f} s"

    def look(self, now_s: float) -> None:
        """Notice whether the judge was away. Raises EvaluatorError the second time: who is held up
        again and again may wait for ever."""
        own_s = time.thread_time()
        gap_s = now_s - self._seen_s - (own_s - self._own_s)
        self._seen_s, self._own_s = now_s, own_s
        if gap_s <= AWAY_S:
            return
        if self.away_s:
            raise EvaluatorError(f"{self}, and again for {gap_s:.0f} s")
        self.away_s, self._others = gap_s, None

    def patience(self, now_s: float) -> float:
        """Return how many times as long as on an idle host this wait may take, by what others have
        had of the processors since this was first asked. What the side itself uses does not count:
        it would choose its own limit."""
        used_s = self.used_s()
        if used_s is None:
            return 1.0
        others_s = load.busy_s() - used_s
        if self._others is None:
            self._others = (now_s, others_s)
        since_s, before_s = self._others
        return load.patience_beside(others_s - before_s, now_s - since_s)
