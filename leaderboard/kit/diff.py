"""Compares two texts line by line, for a page: what was removed, added, and left as it was.

Lines that occur once in both texts are matched first, and the stretches between them again in the
same way: that reads well for code. Work is capped, whatever a submitter wrote: past the cap a
stretch counts as replaced, which is true though not short.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

CONTEXT = 3
MOST_ROWS = 1_500
MOST_LINES = 20_000
MOST_CHARS = 400
MOST_WORK = 300_000
SMALL = 48
GAP = "…"

Stretch = tuple[int, int, int, int]
Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class DiffLine:
    """Holds a line with its numbers; `sign` is "-", "+", " ", or GAP for lines left out."""

    sign: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, kw_only=True)
class Diff:
    """Holds the lines to show; `left_out` at the end were too many to show, or to compare."""

    rows: tuple[DiffLine, ...]
    added: int
    removed: int
    same: int
    left_out: int

    @property
    def is_same(self) -> bool:
        return not (self.added or self.removed or self.left_out)


def compared(old: str, new: str) -> Diff:
    """Return the difference of two texts, of any length, in bounded time."""
    before, after = _lines(old), _lines(new)
    every = list(_rows(before[:MOST_LINES], after[:MOST_LINES]))
    signs = Counter(row.sign for row in every)
    shown = list(_collapsed(every))
    unread = sum(max(0, len(lines) - MOST_LINES) for lines in (before, after))
    return Diff(
        rows=tuple(shown[:MOST_ROWS]),
        added=signs["+"],
        removed=signs["-"],
        same=signs[" "],
        left_out=max(0, len(shown) - MOST_ROWS) + unread,
    )


def _lines(text: str) -> list[str]:
    """Split where a reader of the source sees a new number, not at every mark of Unicode."""
    return text.removesuffix("\n").split("\n") if text else []


def matched(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """Return the positions of equal lines, rising in both texts."""
    found: list[Pair] = []
    work = MOST_WORK
    todo: list[Stretch] = [(0, len(old), 0, len(new))]
    while todo:
        low, high, start, end, ends = _trimmed(old, new, todo.pop())
        found += ends
        work -= len(ends) + high - low + end - start
        if low == high or start == end or work < 0:
            continue
        pairs = _once(old, new, (low, high, start, end))
        if not pairs and high - low <= SMALL and end - start <= SMALL:
            work -= 4 * (high - low) * (end - start)
            found += _closest(old[low:high], new[start:end], low, start)
        for i, j in pairs:
            todo.append((low, i, start, j))
            low, start = i + 1, j + 1
        if pairs:
            todo.append((low, high, start, end))
            found += pairs
    return sorted(found)


def _trimmed(
    old: Sequence[str], new: Sequence[str], stretch: Stretch
) -> tuple[int, int, int, int, list[Pair]]:
    """Return the stretch without what is equal at its beginning and end, and the pairs of that."""
    low, high, start, end = stretch
    pairs = []
    while low < high and start < end and old[low] == new[start]:
        pairs.append((low, start))
        low, start = low + 1, start + 1
    while low < high and start < end and old[high - 1] == new[end - 1]:
        high, end = high - 1, end - 1
        pairs.append((high, end))
    return low, high, start, end, pairs


def _once(old: Sequence[str], new: Sequence[str], stretch: Stretch) -> list[Pair]:
    """Return pairs of lines that occur once on each side, as many as keep their order."""
    low, high, start, end = stretch
    before, after = Counter(old[low:high]), Counter(new[start:end])
    places = {line: j for j, line in enumerate(new[start:end], start) if after[line] == 1}
    pairs = [
        (i, places[line])
        for i, line in enumerate(old[low:high], low)
        if before[line] == 1 and line in places
    ]
    return _rising(pairs)


def _rising(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the longest part of `pairs`, rising in the first text, that rises in the second."""
    tails: list[int] = []
    at: list[int] = []
    before: list[int | None] = []
    for index, (_, j) in enumerate(pairs):
        place = bisect_left(tails, j)
        before.append(at[place - 1] if place else None)
        tails[place : place + 1] = [j]
        at[place : place + 1] = [index]
    chain, last = [], at[-1] if at else None
    while last is not None:
        chain.append(pairs[last])
        last = before[last]
    return chain[::-1]


def _closest(old: Sequence[str], new: Sequence[str], low: int, start: int) -> Iterator[Pair]:
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            yield low + block.a + step, start + block.b + step


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    i = j = 0
    for low, start in [*matched(old, new), (len(old), len(new))]:
        for at in range(i, low):
            yield DiffLine(sign="-", old=at + 1, new=None, text=_cut(old[at]))
        for at in range(j, start):
            yield DiffLine(sign="+", old=None, new=at + 1, text=_cut(new[at]))
        if low < len(old):
            yield DiffLine(sign=" ", old=low + 1, new=start + 1, text=_cut(old[low]))
        i, j = low + 1, start + 1


def _collapsed(rows: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Leave out equal lines that are far from any change; one that would save one line stays."""
    changed = [index for index, row in enumerate(rows) if row.sign != " "]
    near: set[int] = set()
    for index in changed:
        near.update(range(index - CONTEXT, index + CONTEXT + 1))
    index = 0
    while index < len(rows):
        until = index
        while until < len(rows) and until not in near:
            until += 1
        if until - index > 1:
            text = f"{until - index:,} unchanged lines"
            yield DiffLine(sign=GAP, old=None, new=None, text=text)
            index = until
        else:
            yield rows[index]
            index += 1


def _cut(line: str) -> str:
    if len(line) <= MOST_CHARS:
        return line
    return f"{line[:MOST_CHARS]}… {len(line) - MOST_CHARS:,} more characters"
