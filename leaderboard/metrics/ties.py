"""Groups the rows of a board that are not distinguishable. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from leaderboard.metrics.intervals import Interval


def tie_groups(intervals: Sequence[Interval | None]) -> list[int | None]:
    """Return the group of each row, rows given best first.

    A group begins with its best row and holds the rows after it whose intervals overlap that of the
    best. A row that is distinguishable from its neighbours is in no group.
    """
    groups: list[int | None] = []
    leader: Interval | None = None
    number = 0
    for interval in intervals:
        if interval is None:
            groups.append(None)
            continue
        if leader is None or interval.high < leader.low:
            leader, number = interval, number + 1
        groups.append(number)
    size = Counter(groups)
    return [None if size[group] < 2 else group for group in groups]
