"""Reads the kernels of one submission with their runs: last steps, progress by step, failures."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from itertools import starmap
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import orjson
from django.db.models import (
    BooleanField,
    Case,
    Count,
    Exists,
    F,
    OuterRef,
    Q,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from leaderboard.kit.unindexed import unindexed
from leaderboard.models import (
    Kernel,
    LeaderboardRow,
    Problem,
    ProblemAggregate,
    Run,
    Submission,
    Summary,
)
from leaderboard.models.choices import COUNTED_VERDICTS, ISOLATIONS, Status
from leaderboard.models.runs import RunQuerySet, ruled_on
from leaderboard.models.staleness import PRACTICE, outdated, too_few_ranks
from leaderboard.read_model.boards import SETTING_FIELDS, Setting, begins_with
from leaderboard.read_model.leaderboard_rows import Totals
from leaderboard.read_model.steps import MADE

# Stands for the verdict of what scores do not count.
UNCOUNTED = "uncounted"
RULED = "disputed or invalidated by staff"


class Ended(NamedTuple):
    """Describes a kernel and how its newest run ended: that of the submission's setting, if it has
    one there, and there one that counts. A problem is named by its number. `counted_as` is None
    where the run is not one of the scores' setting and of the problem as it now stands. `waits`:
    some run of it has not ended."""

    pk: int
    problem: int
    attempt: int
    step: int
    verdict: str | None
    counted_as: str | None
    scored: bool
    waits: bool
    steps: int = 1

    @property
    def counts(self) -> bool:
        """Return whether scores count it."""
        return self.counted_as is not None and self.scored

    @property
    def group(self) -> str | None:
        """Return under which verdict it is listed."""
        return group_of(self.verdict, counts=self.counts)


class JudgedKernel(NamedTuple):
    """Describes a kernel with all columns of that run, which are None where there is none. `digest`
    is that of the problem as it now stands, `source` that of the kernel; `kernel_us` is in
    microseconds. `here`: the run is of the submission's setting. From `input_tokens` on it is what
    the attempt had used by then; `languages` are those found in the source."""

    pk: int
    problem: int
    attempt: int
    step: int
    verdict: str | None
    slug: str
    title: str
    category: str
    digest: str
    backend: str
    source: str
    run: uuid.UUID | None
    status: str | None
    cause: str | None
    message: str | None
    evidence: str | None
    problem_digest: str | None
    judge_version: str | None
    world_size: int | None
    ranked_from: int
    scored: bool
    here: bool
    isolation: str | None
    mechanisms: list[str] | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    kernel_us: float | None
    utilisation: float | None
    placement: str | None
    practice: bool
    ruled: bool
    older_task: str
    languages: str | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    answers: int | None
    answers_without_usage: int | None
    judge_runs: int | None
    cost_usd: float | None
    wall_s: float | None
    ended: str | None
    steps: int = 1

    @property
    def counts(self) -> bool:
        """Return whether scores count it in this setting, for the problem as it now stands."""
        return self.verdict in COUNTED_VERDICTS and not self.why_not

    @property
    def why_not(self) -> str:
        """Say why a result does not count; empty where it does, and where there is none."""
        if self.verdict not in COUNTED_VERDICTS:
            return ""
        if self.practice:
            return PRACTICE
        if self.ruled:
            return RULED
        judged = (self.problem_digest, self.digest, self.judge_version)
        stale = outdated(*judged, self.older_task, self.placement)
        if self.older_task or self.problem_digest != self.digest:
            return stale
        if few := too_few_ranks(self.world_size, self.ranked_from):
            return few
        if not self.here:
            return stale or "judged in another setting"
        if self.isolation == "none":
            return "judged without isolation"
        return "" if self.scored else "its problem is not scored"

    @property
    def group(self) -> str | None:
        """Return under which verdict it is listed."""
        return group_of(self.verdict, counts=self.counts)

    @property
    def right_speedup(self) -> float | None:
        """Return the speedup; None where the kernel is not right, however fast it was."""
        return self.speedup if self.counts and self.verdict == "ok" else None


def group_of(verdict: str | None, *, counts: bool) -> str | None:
    """Return UNCOUNTED for a verdict that would count of another run."""
    return verdict if counts or verdict not in COUNTED_VERDICTS else UNCOUNTED


Step = TypeVar("Step", Ended, JudgedKernel)
KERNEL = ("pk", "problem_id", "attempt", "step")
# As RunQuerySet.counted has it: of the run itself, and beside the problem as it now stands.
OF_TODAY = {"problem_digest": "problem__digest", "world_size__gte": "problem__ranked_from"}
COUNTED = {
    "status": Status.DONE,
    "verdict__in": COUNTED_VERDICTS,
    "isolation__in": [name for name, _ in ISOLATIONS if name != "none"],
}
NOTHING: Mapping[Any, Any] = MappingProxyType({})
READING_ORDER = ("problem_id", "attempt", "step")
JUDGED = (
    *KERNEL,
    "runs__verdict",
    *("problem__slug", "problem__title", "problem__category_title", "problem__digest"),
    *("backend", "source_id", "runs__id", "runs__status", "runs__cause"),
    *("runs__message", "runs__evidence", "runs__problem_digest"),
    *("runs__judge_version", "runs__world_size", "problem__ranked_from", "problem__scored", "here"),
    *("runs__isolation", "runs__mechanisms", "runs__speedup", "runs__speedup_low"),
    *("runs__speedup_high", "runs__kernel_us", "runs__utilisation", "runs__placement"),
    *("practice", "ruled", "older_task"),
    *("source__found__names", *(f"making__{name}" for name in MADE)),
)


class Standing(NamedTuple):
    """Holds the totals of a submission in a setting, and how many problems are scored there."""

    totals: Totals
    scored: int


def standings_of(found: Submission) -> dict[Setting, Standing]:
    """Return how it stands in each of its settings, also if boards leave it out; one query. First
    where boards begin, unless most was judged elsewhere, then by how many problems were judged."""
    own = LeaderboardRow.objects.filter(submission=found)
    ranked = Problem.objects.scored().filter(ranked_from__lte=OuterRef("world_size")).order_by()
    own = own.annotate(
        usual=Subquery(ProblemAggregate.objects.all().usual()),
        scored=Subquery(ranked.values("scored").annotate(n=Count("pk")).values("n")),
    )
    names = (*SETTING_FIELDS, "usual", "attempted", "total", "scored")
    rows = own.order_by("-attempted", *SETTING_FIELDS).values_list(*names)
    made = [
        (
            Setting(**dict(zip(SETTING_FIELDS, place, strict=True))),
            (usual, attempted),
            Standing(Totals.of(orjson.loads(total)), scored or 0),
        )
        for *place, usual, attempted, total, scored in rows
    ]
    most = made[0][1][1] if made else 0
    made.sort(key=lambda one: not begins_with(one[0], one[1][0], one[1][1], most))
    return {setting: standing for setting, _, standing in made}


class Failed(NamedTuple):
    """Names the run of a failed attempt, and how it ended."""

    run: str
    verdict: str


Tried = tuple[int, int, str]  # the number of a problem, the attempt and the digest of the source


def failed_checks(found: Submission, setting: Setting | None) -> dict[Tried, Failed]:
    """Return the failed attempts that scores count in a timed setting, wherever they ran; one
    query."""
    if setting is None or not setting.is_timed:
        return {}
    # A setting holds what everybody submitted, a submission few rows.
    told = {name: value for name, value in vars(setting).items() if name != "profile"}
    own = Summary.objects.alias(inputs=unindexed("profile")).filter(
        submission=found, inputs=setting.profile, **told
    )
    rows = own.order_by().values_list("problem", "attempts")
    return {
        (problem, entry["attempt"], entry["kernel"]): Failed(entry["run"], entry["verdict"])
        for problem, attempts in rows
        for entry in attempts
        if entry["verdict"] != "ok"
    }


def ended(
    found: Submission, setting: Setting | None, failed: Mapping[Tried, Failed] = NOTHING
) -> list[Ended]:
    """Return how every kernel ended, in one narrow query, as a submission may hold a hundred
    attempts at each problem: other settings are looked through for those kernels alone that have no
    run in this one. `failed` is what failed_checks found."""
    # Not by a join: PostgreSQL would share it out among workers that first read all kernels.
    newest = Run.objects.filter(kernel=OuterRef("pk")).order_by("-created_at", "-id")
    here = _within(setting, newest) if setting else newest
    of_today = {name: OuterRef(path) for name, path in OF_TODAY.items()}
    todays = here.filter(**COUNTED, **of_today).exclude(ruled_on())
    counted, judged_here, judged = (
        Subquery(runs.values("verdict")[:1]) for runs in (todays, here, newest)
    )
    waits = Exists(newest.few(verdict=None))
    own = Kernel.objects.filter(submission=found).order_by(*READING_ORDER)
    own = own.annotate(counted=counted, other=Coalesce(judged_here, judged), waits=waits)
    names = (*KERNEL, "source_id", "older_task", "counted", "other", "problem__scored", "waits")
    rows = own.values_list(*names)
    return [_ended(found, row, failed.get((row[1], row[2], row[4]))) for row in rows]


def _ended(found: Submission, row: tuple[Any, ...], failed: Failed | None) -> Ended:
    pk, problem, attempt, step, _, older_task, counted, other, scored, waits = row
    counts = counted or (failed.verdict if failed else None)
    counted_as = None if older_task or found.is_practice else counts
    return Ended(pk, problem, attempt, step, counts or other, counted_as, scored, waits)


def kernels_of(
    found: Submission,
    setting: Setting | None,
    among: Collection[int] | None = None,
    failed: Collection[str] = (),
) -> list[JudgedKernel]:
    """Return the kernels in the order of problem, attempt and step, those whose key is `among`
    alone; one query. `failed` are the runs of failed_checks."""
    if among is not None and not among:
        return []
    here = vars(setting) if setting else {}
    kernels = Kernel.objects.filter(submission=found)
    if among is not None:
        kernels = kernels.filter(pk__in=among)
    is_here = _of_runs(here) | Q(runs__in=failed) if failed else _of_runs(here)
    if setting:
        judged_here = _within(setting, Run.objects.filter(kernel=OuterRef("pk")))
        kernels = kernels.filter(is_here | ~Exists(judged_here))
    counted = is_here & _of_runs({**COUNTED, **{n: F(path) for n, path in OF_TODAY.items()}})
    ruled = ruled_on("runs__pk", "source")
    told = kernels.annotate(
        here=_truth(is_here) if here else Value(True),
        todays=_truth(counted, unless=ruled),
        ruled=_truth(ruled),
        practice=Value(found.is_practice),
    )
    rows = told.order_by(*READING_ORDER, "-todays", "-runs__created_at", "-runs__id")
    return list(starmap(JudgedKernel, _first_of_each(rows.values_list(*JUDGED))))


def every_kernel(found: Submission, setting: Setting | None) -> list[JudgedKernel]:
    """Return all kernels of a submission as its setting counts them; two queries."""
    return kernels_of(
        found, setting, failed=[one.run for one in failed_checks(found, setting).values()]
    )


def _within(setting: Setting, runs: RunQuerySet) -> RunQuerySet:
    """Return those of a setting among the runs of a kernel. An index may lead to its hardware's:
    PostgreSQL reads them once for many kernels."""
    told = {name: value for name, value in vars(setting).items() if name != "placement"}
    return runs.filter(**told).few(placement=setting.placement)


def _of_runs(conditions: Mapping[str, object]) -> Q:
    return Q(**{f"runs__{name}": value for name, value in conditions.items()})


def _truth(condition: Q, unless: Q | None = None) -> Case:
    excepted = [When(unless, then=False)] if unless else []
    return Case(*excepted, When(condition, then=True), default=False, output_field=BooleanField())


def _first_of_each(rows: Iterable[tuple[object, ...]]) -> Iterable[tuple[object, ...]]:
    """Return the first of the rows that begin with the same key."""
    found: dict[object, tuple[object, ...]] = {}
    for row in rows:
        found.setdefault(row[0], row)
    return found.values()


def attempts_of(kernels: Iterable[Step]) -> dict[tuple[int, int], list[Step]]:
    """Return the steps of each attempt, by problem and attempt."""
    groups: dict[tuple[int, int], list[Step]] = {}
    for one in kernels:
        groups.setdefault((one.problem, one.attempt), []).append(one)
    return groups


def last_steps(kernels: Iterable[Step]) -> list[Step]:
    """Return the kernel that counts of every attempt, with the number of its steps."""
    return [
        steps[-1] if len(steps) == 1 else steps[-1]._replace(steps=len(steps))
        for steps in attempts_of(kernels).values()
    ]
