"""What each submission adds to a ProblemStanding, packed column by column. Pure."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self
from uuid import UUID

from leaderboard.metrics.failures import FAILURE_MODES


class Best(NamedTuple):
    """Of one submission, its attempts, its fastest correct kernel, and what the reference took
    beside the correct ones, in the median."""

    submission_id: int
    submission__model__is_baseline: bool
    made: int
    correct: int
    best_speedup: float | None
    best_low: float | None
    utilisation: float | None
    best_run_id: UUID | str | None
    modes: Sequence[int]
    baseline_us: float | None


# Of each field the type code of its array, and how many items a submission has there.
TYPES = tuple(zip("qBHHdddBHd", (1,) * 7 + (16, len(FAILURE_MODES), 1), strict=True))
RECORD = sum(array(code).itemsize * width for code, width in TYPES)
NO_RUN = bytes(16)


class Parts(NamedTuple):
    """The columns, by submission. NaN stands where there is no number, zeros where no run is."""

    submission: array[Any]
    is_baseline: array[Any]
    made: array[Any]
    correct: array[Any]
    best_speedup: array[Any]
    best_low: array[Any]
    utilisation: array[Any]
    best_run: array[Any]
    modes: array[Any]
    baseline_us: array[Any]

    @classmethod
    def of(cls, rows: Iterable[Best]) -> Self:
        parts = cls(*(array(code) for code, _ in TYPES))
        for best in rows:
            parts.put(best.submission_id, best)
        return parts

    @classmethod
    def unpack(cls, packed: bytes | memoryview) -> Self:
        """Raises ValueError where that is no whole number of records, as of other failure modes."""
        count, rest = divmod(len(packed), RECORD)
        if rest:
            raise ValueError("standings of problems are of another version: run rebuild_summary")
        parts, start = cls.of(()), 0
        for column, (_, width) in zip(parts, TYPES, strict=True):
            end = start + count * width * column.itemsize
            column.frombytes(packed[start:end])
            start = end
        return parts

    def pack(self) -> bytes:
        return b"".join(column.tobytes() for column in self)

    def put(self, submission: int, best: Best | None) -> None:
        """A submission's part in place of what it was; None leaves it out."""
        at, end = (side(self.submission, submission) for side in (bisect_left, bisect_right))
        items = _items(best) if best else [()] * len(TYPES)
        for column, (code, width), own in zip(self, TYPES, items, strict=True):
            column[at * width : end * width] = array(code, own)

    def of_models(self) -> Self:
        """Without baselines."""
        if not any(self.is_baseline):
            return self
        found = type(self)(*(column[:] for column in self))
        for submission, is_baseline in zip(self.submission, self.is_baseline, strict=True):
            if is_baseline:
                found.put(submission, None)
        return found

    def modes_added(self) -> list[int]:
        """By FAILURE_MODES, how many attempts of all ended so."""
        count = len(FAILURE_MODES)
        return [sum(self.modes[mode::count]) for mode in range(count)]

    def run(self, at: int) -> UUID | None:
        """The best of the submission that stands there."""
        known = bytes(self.best_run[16 * at : 16 * (at + 1)])
        return UUID(bytes=known) if known != NO_RUN else None


def _items(best: Best) -> list[Sequence[Any]]:
    """By field."""
    *facts, run, modes, baseline_us = best
    numbers = [math.nan if fact is None else fact for fact in (*facts, baseline_us)]
    singles = [(number,) for number in numbers]
    return [*singles[:-1], UUID(str(run)).bytes if run else NO_RUN, modes, singles[-1]]
