"""Says how many calls are timed. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence

TIMED_CALLS, LEAST_WATCHED, ROUND_CALLS = 64, 8, 16
WATCHED_OF = 5  # calls one is watched
LEAST_CALLS = 5  # timed, and as many watched, where calls are slow
MOST_ROUND_BYTES, MOST_SEALED_BYTES, MOST_TIMED_S = 8 << 30, 1 << 30, 20.0
LEAST_WARMUP_CALLS, LEAST_WARMUP_S, MOST_WARMUP_S = 64, 0.3, 2.0
# In which a rank has to queue a call before its gate opens all the same; and once so many in a row
# were not queued.
AHEAD_MS, HASTY_AHEAD_MS, HASTY_AFTER = 30, 10, 8
SERVES_S, CHECK_AFTER_S = 3600, 600  # a measured reference, without and with a check
EAGER_CALLS = 8  # that are launched once their inputs are there
# Of the race screen: calls back to back, fewer where they take much memory or time.
RACE_CALLS, MOST_RACE_BYTES = 20, 4 << 30
LEAST_RACE_CALLS, RACE_SERIES_S = 6, 6.0
RENEWED_RACE_CALLS = 4  # of the second series: inputs of all can take a minute to make


def round_calls(call_bytes: int) -> int:
    """Return how many calls of a round lie in a slab at once whose inputs and outputs take
    `call_bytes` each."""
    return min(ROUND_CALLS, max(1, MOST_ROUND_BYTES // call_bytes))


def sealed_calls(call_bytes: int) -> int:
    """Return how many calls wait sealed in host memory at once."""
    return max(1, MOST_SEALED_BYTES // call_bytes)


def enough(calls: int, watched: int, elapsed_s: float) -> bool:
    """Return True if the timed phase has its calls, or has used all the time it may."""
    if elapsed_s >= MOST_TIMED_S and min(calls, watched) >= LEAST_CALLS:
        return True
    return calls >= TIMED_CALLS and watched >= LEAST_WATCHED


def ahead_ms(ahead: Sequence[bool] = ()) -> float:
    """Return the milliseconds that a rank has to queue its next call; `ahead` says for each call
    before whether it was queued in time."""
    latest = ahead[-HASTY_AFTER:]
    return AHEAD_MS if any(latest) or len(latest) < HASTY_AFTER else HASTY_AHEAD_MS


def race_calls(call_bytes: int) -> int:
    """Return how many calls of a race screen lie in slabs at once whose inputs and outputs take
    `call_bytes` each, on all ranks together."""
    return min(RACE_CALLS, max(2, MOST_RACE_BYTES // call_bytes))


def race_series(laid_out: int, call_s: float) -> int:
    """Return how many of the calls that are laid out a series makes that take `call_s` each."""
    return min(laid_out, RACE_CALLS, max(LEAST_RACE_CALLS, int(RACE_SERIES_S / max(call_s, 1e-6))))
