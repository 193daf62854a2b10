"""A row of a board: what it says, and where the rest is read that it need not know."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from leaderboard.metrics import scores
from leaderboard.metrics.failures import FAILURE_MODES
from leaderboard.metrics.scores import Attempts, Score
from leaderboard.metrics.tallies import Cell
from leaderboard.read_model.details import Details, Marks
from leaderboard.read_model.leaderboard_rows import Totals

Told = TypeVar("Told")
NOTHING_ENDED = (0,) * len(FAILURE_MODES)


# Not frozen: boards make these by the hundred, and that takes four times as long. Equal to itself
# only, so that what was drawn of one is found again without a look at its values.
@dataclass(kw_only=True, eq=False)
class Entry:
    """One row: a submission judged here, or a published claim, which has no results of its own.

    `date`, in ISO 8601, is the moment when a submission came; a claim's is as exact as its source.
    `utilisation` is the median over the problems solved, of the fastest kernel of each; `backends`
    stand in the order of how many problems they are used for. `results` and `cells`, by problem,
    are read when they are asked for, with those of all rows of the board: see `alone`. `ended`
    counts attempts by FAILURE_MODES. `plain` is the row without details, one object in every
    request as long as the database says the same of it.
    """

    model: str
    slug: str
    vendor: str
    harness: str
    trust: str
    url: str
    date: str | None
    score: Score
    ended: Sequence[int] = NOTHING_ENDED
    utilisation: float | None = None
    cost_usd: float | None = None
    baseline: bool = False
    claimed: bool = False
    backends: tuple[str, ...] = ()
    submission: int | None = None
    details: Details | None = field(default=None, repr=False)
    origin: Entry | None = field(default=None, repr=False)

    def with_details(self, details: Details) -> Entry:
        """As `replace` makes it, in a tenth of the time."""
        made = object.__new__(Entry)
        vars(made).update(vars(self), details=details, origin=self.plain)
        return made

    @property
    def plain(self) -> Entry:
        return self.origin or self

    def url_with(self, tail: str) -> str:
        """In the setting that `tail` names; a claim is of none."""
        return self.url if self.claimed else self.url + tail

    @property
    def day(self) -> str | None:
        """The date, no more exact than a day."""
        return self.date and self.date[:10]

    @property
    def modes(self) -> dict[str, int]:
        return {mode: n for mode, n in zip(FAILURE_MODES, self.ended, strict=True) if n}

    def _told(self, read: Callable[[Details, int], Told], nothing: Told) -> Told:
        """By its details; a claim has none."""
        return read(self.details, self.submission) if self.details and self.submission else nothing

    @functools.cached_property
    def results(self) -> tuple[Attempts, ...]:
        return self._told(Details.results, ())

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        return self._told(Details.cells, ())

    @property
    def marks(self) -> Marks:
        """What a matrix shows of the cells."""
        nothing: Marks = ()
        return self._told(Details.marks, nothing)

    @property
    def solved(self) -> str:
        """At the number of each problem: 1 where it was solved, 0 where tried, else a space."""
        return self._told(Details.solved, "")

    @functools.cached_property
    def _by_category(self) -> Mapping[str, Any]:
        return self._told(Details.by_category, {})

    def score_in(self, category: str, scored: int) -> Score:
        """Of one category, of an entry that was not narrowed."""
        found = self._by_category.get(category)
        if found is None:
            return scores.score([], scored, k=self.score.k)
        return scores.score_of(Totals(*found).summed, scored, k=self.score.k)


def alone(entries: Sequence[Entry]) -> list[Entry]:
    """The same rows, whose cells and results are read without those of others."""
    first = next((entry.details for entry in entries if entry.details), None)
    if first is None:
        return list(entries)
    own = first.alone(entry.submission for entry in entries if entry.submission is not None)
    kinds = {one.details.narrow for one in entries if one.details}
    narrowed = {narrow: replace(own, narrow=narrow) for narrow in kinds}
    return [
        one.with_details(narrowed[one.details.narrow]) if one.details else one for one in entries
    ]
