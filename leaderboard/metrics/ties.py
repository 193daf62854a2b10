"""Groups the rows of a board that are not distinguishable. Pure."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from leaderboard.metrics.intervals import Interval

Row = TypeVar("Row")
# At the number of each problem the share of its attempts; None where none was judged.
Shares = Sequence[float | None]
LEAST_SURE = 0.05


class Outcomes(NamedTuple):
    """Holds the shares of attempts that are correct, and surely faster than p times the reference;
    `fast` is None where it is not known at the p asked for."""

    right: Shares
    fast: Shares | None


@functools.lru_cache(maxsize=4096)
def sign_test(wins: int, losses: int) -> float:
    """Return the exact two-sided p of so many wins and losses between equals."""
    n = wins + losses
    tail = sum(math.comb(n, i) for i in range(min(wins, losses) + 1))
    return min(1.0, float(2 * tail / 2**n))


def is_surely_better(one: Shares, other: Shares) -> bool:
    """Return True if one does better on the problems that both were judged on, by a sign test."""
    wins = losses = 0
    for a, b in zip(one, other, strict=False):
        if a is None or b is None or a == b:
            continue
        if a > b:
            wins += 1
        else:
            losses += 1
    return wins > losses and sign_test(wins, losses) < LEAST_SURE


def overlap(better: Interval, other: Interval) -> bool:
    return other.high >= better.low


def tie_groups(rows: Sequence[Row | None], is_tied: Callable[[Row, Row], bool]) -> list[int | None]:
    """Return the group of each row, rows given best first; None has none.

    A group begins with its best row and holds the rows after it that are tied with the best. A row
    that is distinguishable from its neighbours is in no group.
    """
    groups: list[int | None] = []
    leader: Row | None = None
    number = 0
    for row in rows:
        if row is None:
            groups.append(None)
            continue
        if leader is None or not is_tied(leader, row):
            leader, number = row, number + 1
        groups.append(number)
    size = Counter(groups)
    return [None if size[group] < 2 else group for group in groups]


def place_ranges(places: Sequence[str | None], groups: Sequence[int | None]) -> list[str | None]:
    """Return `2–5` for each row of a group that holds these places; None outside of groups."""
    held: dict[int, list[int]] = {}
    for place, group in zip(places, groups, strict=True):
        if group is not None and place is not None:
            held.setdefault(group, []).append(int(place.removesuffix("=")))
    ranges = {group: f"{min(own)}–{min(own) + len(own) - 1}" for group, own in held.items()}
    return [None if group is None else ranges.get(group) for group in groups]
