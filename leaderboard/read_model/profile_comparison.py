"""Reads what PKB's own check (`upstream`) and hidden inputs (`hardened`) say of each problem."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from django.db.models import Case, Count, OuterRef, Subquery, When

from leaderboard.metrics.tallies import Cell
from leaderboard.models import Kernel, LeaderboardRow, Problem, Run
from leaderboard.models.choices import Harness
from leaderboard.models.summaries import HARDENED, UPSTREAM, LeaderboardRowQuerySet
from leaderboard.read_model.leaderboard_rows import cells_in
from leaderboard.read_model.setting import Setting
from leaderboard.read_model.withholding import hushed_message, is_closed_to_all

OF_SUBMISSION = (
    *("submission_id", "submission__model__name", "submission__model__slug"),
    *("submission__harness", "answered"),
)


class ProfileOutcome(NamedTuple):
    """Holds how the best attempt under one profile ended, or else the one that came furthest, with
    the judge's `message` as everybody may read it."""

    correct: bool
    verdict: str
    cause: str | None
    run: str
    kernel: str
    message: str


class Judged(NamedTuple):
    """Holds a problem under both profiles."""

    problem: int
    upstream: ProfileOutcome
    hardened: ProfileOutcome

    @property
    def passes(self) -> tuple[bool, bool]:
        """Return whether it is solved under `upstream`, and under `hardened`."""
        return self.upstream.correct, self.hardened.correct


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Holds a submission with the problems that it was judged on under both profiles; `backends`
    are those of its kernels, the commonest first. `answered` counts the problems that count on
    so many ranks and that it has kernels for, judged or not."""

    submission: int
    model: str
    slug: str
    harness: str
    backends: tuple[str, ...]
    judged: tuple[Judged, ...]
    answered: int

    @property
    def unjudged(self) -> int:
        """Return how many problems have kernels, and no results under both profiles."""
        return self.answered - len(self.judged)

    def that_pass(self, *, upstream: bool, hardened: bool) -> list[Judged]:
        """Return the problems that pass just so."""
        return [one for one in self.judged if one.passes == (upstream, hardened)]


def settings_of_both(known: Iterable[Setting]) -> list[Setting]:
    """Return, of these settings, the hardened ones that have results under `upstream`, too: those
    that only check first, as what fails is rarely timed."""
    own = list(known)
    also = {replace(one, profile=HARDENED) for one in own if one.profile == UPSTREAM}
    return sorted((one for one in own if one in also), key=lambda one: one.is_timed)


def beside(setting: Setting) -> list[Beside]:
    """Return models' submissions with their problems under both profiles, in a setting that is the
    same but for the profile; two queries. Baselines and people's kernels are left out."""
    rows = _rows(setting).annotate(answered=_answered(setting.world_size))
    stored: dict[tuple[int, str, str, str, int], dict[str, str]] = defaultdict(dict)
    for *whose, profile, cells in rows.values_list(*OF_SUBMISSION, "profile", "cells"):
        number, model, slug, harness, answered = whose
        stored[number, model, slug, harness, answered][profile] = cells
    pairs = {whose: list(_pairs(own)) for whose, own in stored.items() if len(own) == 2}
    every = (cell for own in pairs.values() for pair in own for cell in pair)
    causes = _failures(cell.run for cell in every if not cell.correct)
    return [
        Beside(
            submission=number,
            model=model,
            slug=slug,
            harness=harness,
            backends=tuple(
                name for name, _ in Counter(ours.backend for _, ours in own).most_common()
            ),
            judged=tuple(
                Judged(theirs.problem, _outcome(theirs, causes), _outcome(ours, causes))
                for theirs, ours in own
            ),
            answered=answered,
        )
        for (number, model, slug, harness, answered), own in pairs.items()
        if own
    ]


def passing(setting: Setting) -> tuple[int, int]:
    """Count the kernels of models that pass under `upstream`, and those of them that fail hidden
    inputs; one query."""
    judged = [pair for one in _both(setting) for pair in one]
    passed = [ours for theirs, ours in judged if theirs.correct]
    return len(passed), sum(not ours.correct for ours in passed)


def _both(setting: Setting) -> Iterator[list[tuple[Cell, Cell]]]:
    """Yield each submission's problems with their results under both profiles."""
    stored: dict[int, dict[str, str]] = defaultdict(dict)
    for number, profile, cells in _rows(setting).values_list("submission_id", "profile", "cells"):
        stored[number][profile] = cells
    yield from (list(_pairs(own)) for own in stored.values() if len(own) == 2)


def _rows(setting: Setting) -> LeaderboardRowQuerySet:
    where = {name: value for name, value in vars(setting).items() if name != "profile"}
    rows = LeaderboardRow.objects.ranked().filter(**where, profile__in=(HARDENED, UPSTREAM))
    rows = rows.filter(submission__model__is_baseline=False).order_by("submission_id")
    return rows.exclude(submission__harness=Harness.HUMAN)


def _answered(world_size: int) -> Subquery:
    """Return for how many problems that count on so many ranks a row's submission has kernels."""
    counting = Problem.objects.scored(world_size)
    kernels = Kernel.objects.filter(submission=OuterRef("submission"), problem__in=counting)
    counted = kernels.filter(older_task="").order_by().values("submission")
    return Subquery(counted.annotate(n=Count("problem", distinct=True)).values("n"))


def _pairs(stored: Mapping[str, str]) -> Iterator[tuple[Cell, Cell]]:
    ours = {cell.problem: cell for cell in cells_in(stored[HARDENED])}
    for cell in cells_in(stored[UPSTREAM]):
        if cell.problem in ours:
            yield cell, ours[cell.problem]


def _failures(runs: Iterable[str]) -> dict[str, tuple[str | None, str]]:
    """Return the cause and the message of these runs, without what quotes a withheld source."""
    closed = Case(When(is_closed_to_all(), then=True), default=False)
    found = Run.objects.filter(pk__in=list(runs)).annotate(closed=closed)
    return {
        str(pk): (cause, hushed_message(verdict, cause, message) if hushed else message)
        for pk, verdict, cause, message, hushed in found.values_list(
            "pk", "verdict", "cause", "message", "closed"
        )
    }


def _outcome(cell: Cell, failures: Mapping[str, tuple[str | None, str]]) -> ProfileOutcome:
    cause, message = failures.get(cell.run, (None, ""))
    correct = cell.correct > 0
    return ProfileOutcome(correct, cell.verdict, cause, cell.run, cell.kernel, message)
