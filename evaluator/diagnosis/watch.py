"""Tells a deadlock from slowness while ranks are silent: looks again and again at where they stand.

All evidence comes from the ranks' side. Forged, it ends their own run with a verdict that counts
against them, so it may be believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluator.diagnosis.stacks import RankStack, stacks
from evaluator.messages.report import RankLog

LOOK_EVERY_S = 5.0
LATE_LOOKS = 3  # who looks so much later than it should has not been there, nor maybe the ranks
STANDSTILL_S = 25.0
SHARED_STANDSTILL_S = 45.0  # ranks on one GPU take turns there: a slow call stood still for over 20
IDLE_SHARE = 0.05  # of a processor, by all processes of a side together

Places = Mapping[int, RankStack]


@dataclass(kw_only=True)
class StandstillWatch:
    """Collects looks at the ranks of a side during one wait of the judge. Times are of one clock,
    in seconds; on GPUs (`spins` true) a thread that waits may use its processor. They stand still
    after `standstill_s`."""

    spins: bool
    standstill_s: float = STANDSTILL_S
    is_idle: bool = True
    places: Places | None = None
    since_s: float = 0.0
    looked_s: float = 0.0
    processor_s: float | None = None

    def look(
        self, now_s: float, processor_s: float, said: Sequence[RankLog], silent: Sequence[int]
    ) -> bool:
        """Return whether the silent ranks have stood still, waiting, for long enough.

        `said` is what ranks have printed since the last look, when they were asked where they are;
        `processor_s` what all processes of the side have used of processors so far. Before the
        first look nobody was asked: what is heard there was said of a wait that has ended. Where
        the judge itself was away since the last one, nobody knows when it was said: it counts from
        now on.
        """
        if self.processor_s is None:
            self.looked_s, self.processor_s = now_s, processor_s
            return False
        used_s = processor_s - self.processor_s
        self.is_idle = self.spins or used_s <= IDLE_SHARE * (now_s - self.looked_s)
        found = {stack.rank: stack for stack in stacks(said) if stack.rank in silent}
        is_still = len(found) == len(silent) and all(map(is_in_a_wait, found.values()))
        was_away = now_s - self.looked_s > LATE_LOOKS * LOOK_EVERY_S
        if not self.is_idle or not is_still or was_away or found != self.places:
            self.places = found if is_still else None
            self.since_s = now_s if was_away else self.looked_s
        self.looked_s, self.processor_s = now_s, processor_s
        return self.places is not None and now_s - self.since_s >= self.standstill_s


def is_in_a_wait(stack: RankStack) -> bool:
    """Return whether a rank is in a call that ends only with another rank's help, or waits for a
    GPU that got its last work long ago."""
    if stack.waits_in:
        return True
    waits_for_gpu = any(frame.function == "synchronize" for frame in stack.frames)
    return waits_for_gpu and (stack.own_frame is None or bool(stack.pending))
