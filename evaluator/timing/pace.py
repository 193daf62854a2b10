"""Says how the timed phase goes on: of how many calls, for how long. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.messages.job import Device
from evaluator.messages.report import Phase, Progress

WARMUP_CALLS = 500
TIMED_CALLS = 100
MIN_TIMED_S = 0.5
SINGLE_CALLS = 16  # of a round
LEAST_ROUNDS = 2  # one says nothing of how rounds scatter
ALONE_ROUNDS = 4
MOST_ALONE = 3  # times as many rounds as beside the submission


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Describes how the timed phase goes on a kind of device.

    A batch begins with what the judge does not want to time: a rank that wakes up, a GPU that turns
    from the judge's inputs to the rank's calls. Many calls make that small; where they would take
    more than `ample_bytes`, each takes long enough, and `few_calls` do; nor need a batch take much
    longer than `ample_us`, for which `least_calls` may be enough. An empty batch begins with
    `spare_calls`, if it is long enough.
    """

    many_calls: int
    few_calls: int
    least_calls: int
    spare_calls: int
    ample_bytes: int
    ample_us: float
    most_bytes: int
    least_batches: int
    least_warmup_s: float
    alone_warmup_s: float
    most_warmup_s: float
    most_timed_s: float

    def batch_calls(self, call_bytes: int) -> int:
        """Return how many calls a batch has whose inputs and outputs take `call_bytes` each."""
        usual = self.many_calls if call_bytes * self.many_calls <= self.ample_bytes else 0
        return usual or min(self.few_calls, max(1, self.most_bytes // call_bytes))

    def long_enough(self, call_us: float) -> int:
        """Return how many calls of `call_us` each make a batch long enough: in powers of two from
        `least_calls` on, so that the same reference has the same number again."""
        calls = self.least_calls
        while calls * call_us < self.ample_us and calls < self.many_calls:
            calls *= 2
        return calls


PACES = {
    Device.CPU: Pace(
        many_calls=16,
        few_calls=16,
        least_calls=16,
        spare_calls=0,
        ample_bytes=1 << 30,
        ample_us=0.0,
        most_bytes=4 << 30,
        least_batches=7,
        least_warmup_s=0.0,
        alone_warmup_s=0.05,
        most_warmup_s=10.0,
        most_timed_s=30.0,
    ),
    Device.CUDA: Pace(
        many_calls=64,
        few_calls=16,
        least_calls=16,
        spare_calls=4,
        ample_bytes=2 << 30,
        ample_us=8000.0,
        most_bytes=16 << 30,
        least_batches=8,
        least_warmup_s=0.3,
        alone_warmup_s=0.3,
        most_warmup_s=1.5,
        most_timed_s=5.0,
    ),
}


def enough(batches: int, batch_calls: int, elapsed_s: float, pace: Pace) -> bool:
    """Return whether the timed phase has its calls and its time, or has used all the time it
    may."""
    has_calls = batches * batch_calls >= TIMED_CALLS and batches >= pace.least_batches
    is_late = batches >= LEAST_ROUNDS and elapsed_s >= pace.most_timed_s
    return is_late or (has_calls and elapsed_s >= MIN_TIMED_S)


def progress(batches: int, batch_calls: int, pace: Pace) -> Progress:
    """Return how far the timed phase is."""
    total = max(TIMED_CALLS, pace.least_batches * batch_calls)
    return Progress(phase=Phase.TIMED, done=min(batches * batch_calls, total), total=total)


# Of the race screen: calls back to back, fewer where they take much memory or time.
RACE_CALLS, MOST_RACE_BYTES = 20, 4 << 30
LEAST_RACE_CALLS, RACE_SERIES_S = 6, 6.0
RENEWED_RACE_CALLS = 4  # of the second series: inputs of all can take a minute to make


def race_calls(call_bytes: int) -> int:
    """Return how many calls of a race screen lie in slabs at once whose inputs and outputs take
    `call_bytes` each, on all ranks together."""
    return min(RACE_CALLS, max(2, MOST_RACE_BYTES // call_bytes))


def race_series(laid_out: int, call_s: float) -> int:
    """Return how many of the calls that are laid out a series makes that take `call_s` each."""
    return min(laid_out, RACE_CALLS, max(LEAST_RACE_CALLS, int(RACE_SERIES_S / max(call_s, 1e-6))))
