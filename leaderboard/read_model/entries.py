"""Defines a row of a board, which reads its details when they are asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from leaderboard.kit.json_types import JsonObject
from leaderboard.metrics import scores
from leaderboard.metrics.dominance import Dominant
from leaderboard.metrics.intervals import Interval, wilson_interval
from leaderboard.metrics.scores import Attempts, Score
from leaderboard.metrics.tallies import Cell
from leaderboard.metrics.ties import Outcomes
from leaderboard.models.choices import Harness
from leaderboard.models.model_names import HOUSE
from leaderboard.read_model.details import LazyColumns, MatrixMark, Speeds
from leaderboard.read_model.leaderboard_rows import Totals

Value = TypeVar("Value")


# Not frozen: boards make these by the hundred, and that takes four times as long.
@dataclass(kw_only=True, eq=False)
class BoardRow:
    """Describes one row: a submission judged here, or a published claim, which has no results of
    its own.

    `date`, in ISO 8601, is the moment when a submission came; a claim's is as exact as its source.
    `numbers` are those that are SUMMED, by their keys; `backends` stand in the order of how many
    problems they are used for. `results` and `cells`, by problem, are read when they are asked for,
    with those of all rows of the board: see `alone`. `modes` counts attempts by failure mode,
    `made` all. `speedup_interval` is that of the mean speedup, `dominant` the problem that
    dominates that mean, `outcomes` are those of each problem, `where` is the hardware of a claim.
    `cost_usd` is what its submitter says. An `unfiltered` baseline shows all of its kernels,
    whatever filters ask for. What is `withheld` is its source, by its submitter.
    """

    model: str
    slug: str
    vendor: str
    harness: str
    trust: str
    url: str
    date: str | None
    score: Score
    modes: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    cost_usd: float | None = None
    made: int = 0
    speedup_interval: Interval | None = None
    dominant: Dominant | None = None
    outcomes: Outcomes | None = None
    where: str = ""
    baseline: bool = False
    claimed: bool = False
    unfiltered: bool = False
    backends: tuple[str, ...] = ()
    submission: int | None = None
    withheld: bool = False
    details: LazyColumns | None = field(default=None, repr=False)

    def url_with(self, tail: str) -> str:
        """Return the address in the setting that `tail` names; a claim has no setting."""
        return self.url if self.claimed else self.url + tail

    @property
    def by_people(self) -> bool:
        """Return True for kernels that people wrote, the reference's own apart."""
        return self.harness == Harness.HUMAN and not (self.baseline or self.claimed)

    @property
    def house(self) -> bool:
        """Return True for this site's own kernels, which are a baseline."""
        return self.baseline and self.slug == HOUSE

    @property
    def day(self) -> str | None:
        """Return the date, no more exact than a day."""
        return self.date and self.date[:10]

    @property
    def headline(self) -> float | None:
        """Return the share that boards go by: fast_p@1, or pass@1 where nothing is timed."""
        return self.score.fast_at_1 if self.score.is_timed else self.score.pass_at_1

    @property
    def headline_interval(self) -> Interval | None:
        """Return the 95 % interval of the headline; a share that is not known counts as none."""
        return wilson_interval(self.headline or 0.0, self.score.scored)

    @property
    def tokens_per_solved(self) -> float | None:
        return self._per_solved("output_tokens")

    @property
    def usd_per_solved(self) -> float | None:
        return self._per_solved("usd")

    def _per_solved(self, key: str) -> float | None:
        """Return what a solved problem took, with all that was tried in vain; None where nothing is
        solved or somebody does not tell."""
        taken = self.numbers.get(key)
        return taken / self.score.correct if taken is not None and self.score.correct else None

    def _read(self, read: Callable[[LazyColumns, int], Value], nothing: Value) -> Value:
        """Return what `read` finds in the details; `nothing` for a claim, which has none."""
        return read(self.details, self.submission) if self.details and self.submission else nothing

    @functools.cached_property
    def results(self) -> tuple[Attempts, ...]:
        return self._read(LazyColumns.results, ())

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        return self._read(LazyColumns.cells, ())

    @property
    def speeds(self) -> Speeds:
        """Return the speedups of the best correct kernels."""
        return self._read(LazyColumns.speeds, Speeds((), ()))

    @property
    def marks(self) -> tuple[MatrixMark, ...]:
        """Return what a matrix shows of the cells."""
        return self._read(LazyColumns.marks, ())

    @property
    def solved(self) -> str:
        """Return a letter at the number of each problem: 1 where it was solved, 0 where tried, else
        a space."""
        return self._read(LazyColumns.solved, "")

    @functools.cached_property
    def _by_category(self) -> JsonObject:
        return self._read(LazyColumns.by_category, {})

    def score_in(self, category: str, scored: int) -> Score:
        """Return the score of one category with `scored` problems, of an entry that no filter
        changed."""
        found = self._by_category.get(category)
        sums = scores.sums([]) if found is None else Totals.of(found).sums
        return scores.score_of(sums, scored, k=self.score.k, is_timed=self.score.is_timed)


def alone(entries: Sequence[BoardRow]) -> list[BoardRow]:
    """Return the same rows, whose cells and results are read without those of others."""
    first = next((entry.details for entry in entries if entry.details), None)
    if first is None:
        return list(entries)
    own = first.alone(entry.submission for entry in entries if entry.submission is not None)
    kinds = {one.details.narrow for one in entries if one.details}
    narrowed = {narrow: replace(own, narrow=narrow) for narrow in kinds}
    return [
        replace(one, details=narrowed[one.details.narrow]) if one.details else one
        for one in entries
    ]
