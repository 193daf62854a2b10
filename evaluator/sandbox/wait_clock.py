"""Says how long the judge has really waited for ranks."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from evaluator.diagnosis import watch
from evaluator.messages.faults import EvaluatorError

AWAY_S = watch.LATE_LOOKS * watch.LOOK_EVERY_S


@dataclass(kw_only=True)
class WaitClock:
    """Follows one wait, by the same clock as `began_s`. In `away_s` of it the judge was stopped, or
    its whole host: it neither looked nor used a processor."""

    began_s: float
    away_s: float = 0.0
    _seen_s: float = 0.0
    _own_s: float = field(default_factory=time.thread_time)

    def __post_init__(self) -> None:
        self._seen_s = self.began_s

    def __str__(self) -> str:
        return f"the judge was away for {self.away_s:.0f} s"

    def look(self, now_s: float) -> None:
        """Notice whether the judge was away. Raises EvaluatorError the second time: who is held up
        again and again may wait for ever."""
        gap_s = now_s - self._seen_s - (time.thread_time() - self._own_s)
        self.go_on(now_s)
        if gap_s <= AWAY_S:
            return
        if self.away_s:
            raise EvaluatorError(f"{self}, and again for {gap_s:.0f} s")
        self.away_s = gap_s

    def go_on(self, now_s: float) -> None:
        """Wait on after a look at the ranks. One that takes long is no absence: they can hold what
        it reads, as a process its own map of memory, and would choose when the judge is away."""
        self._seen_s, self._own_s = now_s, time.thread_time()
