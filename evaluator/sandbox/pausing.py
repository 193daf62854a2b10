"""Stops everything in a sandbox while others are timed, and makes sure that it stood still."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evaluator.host import processes
from evaluator.host.freezer import Freezer
from evaluator.messages.faults import Fault
from evaluator.messages.report import Pauses, Verdict

SPIN_S = 0.02
POLL_S = 0.001
# Polls and no seconds: a loaded host wakes the judge late from each, and so gives the side longer.
MOST_POLLS = 10_000
POLLS_A_SPAN = 100  # on average, beside MOST_POLLS for one that takes long
POLLS_A_TRY = 100
# What a thread still uses on its way to a stop is counted in a span; it is microseconds.
FREE_S, FREE_SHARE = 0.05, 0.05


@dataclass(kw_only=True)
class Pauser:
    """Stops and resumes the processes of a sandbox. `spans` are the pauses so far, `paused_s` what
    they came to, `waited_s` how long the judge waited for stops, `worked_s` the processor time
    that was used in spans all the same, `polls` how often it was looked for a stop."""

    freezer: Freezer | None
    pids: Callable[[], list[int]]
    spans: int = 0
    paused_s: float = 0.0
    waited_s: float = 0.0
    worked_s: float = 0.0
    polls: int = 0

    @property
    def counted(self) -> Pauses:
        """Return the pauses so far, for a report."""
        return Pauses(
            spans=self.spans,
            paused_s=round(self.paused_s, 4),
            waited_s=round(self.waited_s, 4),
            worked_s=round(self.worked_s, 4),
        )

    def anew(self) -> Pauser:
        """Return one of the same processes that has counted nothing."""
        return Pauser(freezer=self.freezer, pids=self.pids)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Keep everything stopped while the block runs. Raises Fault where it does not stop."""
        try:
            self._stop()
            yield
        finally:
            self._resume()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Keep everything stopped while the block runs, and count that. Raises Fault where it does
        not stop, or where it used processor time meanwhile."""
        with self.stopped():
            began, used = time.monotonic(), self._used_s()
            yield
            still_used = self._used_s()
        self._record(time.monotonic() - began, used, still_used)

    def _stop(self) -> None:
        began = time.monotonic()
        left = MOST_POLLS + POLLS_A_SPAN * self.spans - self.polls
        for poll in range(min(MOST_POLLS, left)):
            if poll % POLLS_A_TRY == 0:
                self._begin(anew=poll > 0)
            if self._has_stopped(began + SPIN_S):
                self.waited_s += time.monotonic() - began
                return
            self.polls += 1
            time.sleep(POLL_S)
        waited_s = self.waited_s + time.monotonic() - began
        message = f"processes of the ranks could not be stopped within {waited_s:.1f} s in all"
        raise Fault(Verdict.RESOURCE_LIMIT, "pause", message)

    def _begin(self, *, anew: bool) -> None:
        """Tell the kernel to stop all. Without a freezer let them go on first: a process may wait
        in vfork for a child that was stopped."""
        if self.freezer is not None:
            self.freezer.freeze()
        elif anew:
            self._resume()
            time.sleep(POLL_S)

    def _has_stopped(self, spin_until: float) -> bool:
        is_still = self._all_frozen if self.freezer is not None else self._all_signalled
        while not (found := is_still()) and time.monotonic() < spin_until:
            pass
        return found

    def _all_frozen(self) -> bool:
        return self.freezer is not None and self.freezer.is_frozen

    def _all_signalled(self) -> bool:
        """Signal every process with a thread that does not stand still. All stand still where two
        looks in a row find none: what one forked before it stopped is in the second."""
        seen: set[int] | None = None
        while True:
            inside = {pid: processes.threads([pid]) for pid in self.pids()}
            moving = [pid for pid, tasks in inside.items() if not all(tasks.values())]
            for pid in moving:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            now = {task for tasks in inside.values() for task in tasks}
            if moving or now == seen:
                return not moving
            seen = now

    def _resume(self) -> None:
        if self.freezer is not None:
            self.freezer.thaw()
            return
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _used_s(self) -> dict[int, float]:
        """Return the processor seconds used so far: in all (0), or by thread."""
        total_s = self.freezer.processor_s if self.freezer is not None else None
        return processes.thread_times_s(self.pids()) if total_s is None else {0: total_s}

    def _record(self, span_s: float, before: dict[int, float], after: dict[int, float]) -> None:
        """Count a span. Raises Fault where all spans together saw more than threads need to stop;
        a thread that ended in one may have used all of it."""
        self.spans += 1
        self.paused_s += span_s
        self.worked_s += sum(used - before.get(task, 0.0) for task, used in after.items())
        self.worked_s += span_s * len(before.keys() - after.keys())
        if self.worked_s > FREE_S + FREE_SHARE * self.paused_s:
            message = (
                f"the ranks used {self.worked_s:.2f} s of processor time while they were paused"
                f" ({self.paused_s:.2f} s)"
            )
            raise Fault(Verdict.PROTOCOL_VIOLATION, "paused_work", message)
