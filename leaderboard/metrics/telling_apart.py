"""Tells submissions of one model apart by what differs between them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol


class Tellable(Protocol):
    """Describes what a submission is told apart by; `day` is when it came, in ISO 8601."""

    @property
    def model(self) -> str: ...
    @property
    def harness(self) -> str: ...
    @property
    def backends(self) -> tuple[str, ...]: ...
    @property
    def day(self) -> str | None: ...
    @property
    def submission(self) -> int | None: ...


class Submitted(NamedTuple):
    """Holds the same for pages that read no rows of a board."""

    model: str
    harness: str
    submission: int
    backends: tuple[str, ...] = ()
    day: str | None = None


# In the order in which they are asked for: the number alone always differs.
DIFFERENCES: Sequence[Callable[[Tellable], str]] = (
    lambda one: ", ".join(one.backends),
    lambda one: one.day or "",
    lambda one: "" if one.submission is None else f"no. {one.submission}",
)


def told_apart(rows: Sequence[Tellable]) -> list[str]:
    """Return the harness of each row, and behind it what no other row of its model has: backends,
    where several have that harness, then the day, then the number."""
    words: list[tuple[str, ...]] = [(one.model, one.harness) for one in rows]
    for difference in DIFFERENCES:
        alike: dict[tuple[str, ...], list[int]] = {}
        for at, said in enumerate(words):
            alike.setdefault(said, []).append(at)
        for members in alike.values():
            values = {at: difference(rows[at]) for at in members}
            if len(set(values.values())) > 1:
                for at, value in values.items():
                    words[at] = (*words[at], *filter(None, (value,)))
    return [", ".join(said[1:]) for said in words]


def names_of(rows: Iterable[Tellable]) -> list[str]:
    """Return `Model (zero-shot, triton)` for each row, as figures call a submission."""
    every = list(rows)
    return [f"{one.model} ({how})" for one, how in zip(every, told_apart(every), strict=True)]
