"""Reads what was judged of one problem: best kernels, attempts, failures, and how it scales."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, F, Q, QuerySet, Subquery, When
from django.db.models.functions import Length

from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.metrics import scores
from leaderboard.metrics.difficulty import Difficulty
from leaderboard.metrics.failures import CORRECT
from leaderboard.metrics.tallies import in_order
from leaderboard.metrics.telling_apart import Submitted, names_of
from leaderboard.models import Problem, ProblemAggregate, Run, Submission, Summary
from leaderboard.models.model_names import HOUSE
from leaderboard.models.staleness import of_other_problems
from leaderboard.models.summaries import HARDENED, STANDARD, SummaryQuerySet
from leaderboard.read_model.boards import SETTING_FIELDS, Setting

KERNEL_NUMBERS = ("speedup", "speedup_low", "speedup_high", "kernel_us", "baseline_us")
KERNEL_COLUMNS = (
    *("model", "harness", "submission", "attempt", "backend", "verdict", *KERNEL_NUMBERS),
    *("bound_us", "limiter", "utilisation", "mechanisms", "kernel", "run"),
)
ATTEMPT_COLUMNS = (
    *("model", "harness", "submission", "attempt", "run", "verdict", "cause", "speedup", "low"),
    *("kernel_us", "baseline_us"),
    *("utilisation", "backend", "mechanisms", "nccl", "kernel"),
)
FASTEST_FIRST = F("best_run__kernel_us").asc(nulls_last=True)


class SettingTotals(NamedTuple):
    """Holds what the problem came to in one setting, as a ProblemAggregate says."""

    hardware_id: str
    world_size: int
    size: str
    dtype: str
    profile: str
    judge_version: str
    placement: str
    hardware__title: str
    submissions: int
    solved: int
    models_tried: int
    models_solved: int
    faster: int
    made: int
    correct: int
    modes: Mapping[str, int]
    run__kernel_us: float | None
    baseline_runs: int
    baseline_us: float | None
    baseline_low_us: float | None
    baseline_high_us: float | None
    hardware__device: str
    hardware__max_world_size: int
    hardware__facts__pair_gb_s: float | None

    @property
    def difficulty(self) -> str:
        return Difficulty(self.models_solved, self.models_tried).difficulty

    @property
    def setting(self) -> Setting:
        return Setting(**dict(zip(SETTING_FIELDS, self, strict=False)))  # type: ignore[arg-type]

    @property
    def commonest_failure(self) -> tuple[str, int] | None:
        """Return the mode of the most failures and how many they are; None where it is that of one
        alone, or another is as common."""
        found = Counter(in_order(self.modes))
        del found[CORRECT]
        first, second = [*found.most_common(2), ("", 0), ("", 0)][:2]
        return first if first[1] > max(second[1], 1) else None


class SubmissionRow(NamedTuple):
    """Holds a submission at the problem, with its fastest correct kernel if there is one."""

    submission_id: int
    submission__harness: str
    submission__model__name: str
    submission__model__is_baseline: bool
    submission__withholds_source: bool
    best_speedup: float | None
    best_run__kernel__attempt: int | None
    best_run__kernel__backend: str | None
    best_run__verdict: str | None
    best_run__speedup: float | None
    best_run__speedup_low: float | None
    best_run__speedup_high: float | None
    best_run__kernel_us: float | None
    best_run__baseline_us: float | None
    best_run__bound_us: float | None
    best_run__limiter: str | None
    best_run__utilisation: float | None
    best_run__mechanisms: Sequence[str] | None
    best_run__kernel__source_id: str | None
    best_run_id: UUID | None
    attempts: Sequence[JsonObject]

    @property
    def is_reference(self) -> bool:
        """Return True for a baseline, which is shown and counted nowhere."""
        return self.submission__model__is_baseline

    @property
    def submitted(self) -> Submitted:
        """Return what tells the submission from others of its model."""
        name, harness, number = _named(self)
        return Submitted(name, harness, number, _backends(self.attempts))


def totals_by_setting(problem: Problem) -> list[SettingTotals]:
    """Return the totals in every setting, also where the problem is not scored; one query."""
    own = ProblemAggregate.objects.filter(problem=problem)
    return list(map(SettingTotals._make, own.values_list(*SettingTotals._fields)))


def fastest_anywhere(problem: Problem) -> Run | None:
    """Return the run of the fastest correct kernel on hidden inputs, of models or of this site.

    One query. It ran on GPUs and at the standard size if any did, and by the newest judge that
    timed one.
    """
    own = Summary.objects.shown().filter(problem=problem, profile=HARDENED, best_speedup__gt=0)
    kernels = own.filter(Q(submission__model__is_baseline=False) | Q(submission__model__slug=HOUSE))
    at_standard = Case(When(size=STANDARD, then=0), default=1)
    newest = (Length("judge_version").desc(), F("judge_version").desc())  # 10 after 9
    on_gpus = Case(When(hardware__device="cuda", then=0), default=1)
    order = (on_gpus, at_standard, *newest, "-best_speedup", "submission_id")
    best = kernels.order_by(*order).values("best_run")[:1]
    return Run.objects.with_names().filter(pk=Subquery(best)).first()


def has_older_results(problem: Problem) -> bool:
    """Return whether kernels were judged on another version of the problem; one query."""
    seen = Submission.objects.ranked()
    runs = Run.objects.filter(kernel__problem=problem, kernel__submission__in=seen).order_by()
    return of_other_problems(runs).exists()


def in_view(settings: Iterable[Setting], stood: Iterable[SettingTotals]) -> list[Setting]:
    """Return the site's settings, those that this problem has results in before the others."""
    own = {one.setting for one in stood}
    return sorted(settings, key=lambda setting: setting not in own)


def rows_of(
    problem: Problem, setting: Setting | None, most: int | None = None
) -> list[SubmissionRow]:
    """Return references, then the submissions, as many as `most`, the shortest time first; one
    query. The time is the kernel's own: speedups are over references that differ."""
    if setting is None:
        return []
    rows = list(map(SubmissionRow._make, _rows(_shown(problem, setting), most)))
    return [
        *(row for row in rows if row.is_reference),
        *scores.in_order(
            (row for row in rows if not row.is_reference),
            lambda row: row.best_run__kernel_us,
            descending=False,
        ),
    ]


def _rows(own: SummaryQuerySet, most: int | None) -> QuerySet[Summary, tuple[Any, ...]]:
    if most is not None:
        models = own.filter(submission__model__is_baseline=False)
        best = models.order_by(FASTEST_FIRST, "submission_id").values("pk")[:most]
        own = own.filter(Q(submission__model__is_baseline=True) | Q(pk__in=best))
    return own.order_by("submission_id").values_list(*SubmissionRow._fields)


def _shown(problem: Problem, setting: Setting) -> SummaryQuerySet:
    return Summary.objects.shown().filter(problem=problem, **asdict(setting))


def kernel_records(rows: Iterable[SubmissionRow]) -> list[JsonDict]:
    """Return the best kernel of each row that has one, by KERNEL_COLUMNS."""
    return [kernel_record(row) for row in rows if row.best_run_id is not None]


def kernel_record(row: SubmissionRow) -> JsonDict:
    columns = (*_named(row), *row[6:-2], str(row.best_run_id))
    return dict(zip(KERNEL_COLUMNS, columns, strict=True))


def _named(row: SubmissionRow) -> tuple[str, str, int]:
    return row.submission__model__name, row.submission__harness, row.submission_id


def attempt_records(rows: Iterable[SubmissionRow], most: int | None = None) -> list[JsonDict]:
    """Return every attempt, or as many as `most`, by ATTEMPT_COLUMNS; correct ones first, the
    shortest time first."""
    names = ATTEMPT_COLUMNS[3:]
    found = [
        (row, {**entry, "kernel_us": _time_of(entry)}) for row in rows for entry in row.attempts
    ]
    found.sort(key=lambda pair: pair[1]["verdict"] != "ok")  # also where nothing is timed
    best = scores.in_order(found, lambda pair: pair[1]["kernel_us"], descending=False)[:most]
    # By name: PostgreSQL keeps the keys of an object in an order of its own.
    return [
        dict(zip(ATTEMPT_COLUMNS, (*_named(row), *map(entry.get, names)), strict=True))
        for row, entry in best
    ]


def _time_of(entry: JsonObject) -> float | None:
    """Return the microseconds of a timed attempt: a speedup is the reference's time over its."""
    speedup, baseline_us = entry["speedup"], entry["baseline_us"]
    return baseline_us / speedup if speedup and baseline_us is not None else None


def mode_rows(problem: Problem, setting: Setting | None) -> dict[str, Mapping[str, int]]:
    """Count the attempts of each submission by failure mode, the most attempts first; one query."""
    if setting is None:
        return {}
    own = _shown(problem, setting).filter(submission__model__is_baseline=False)
    names = ("submission__model__name", "submission__harness", "submission_id")
    rows = list(own.order_by("submission_id").values_list(*names, "attempts", "modes"))
    who = [
        Submitted(model, harness, number, _backends(attempts))
        for model, harness, number, attempts, _ in rows
    ]
    groups = dict(zip(names_of(who), (modes for *_, modes in rows), strict=True))
    return dict(sorted(groups.items(), key=lambda pair: -sum(pair[1].values())))


def _backends(attempts: Iterable[JsonObject]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry["backend"] for entry in attempts))
