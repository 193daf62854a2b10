"""Reads what a snapshot holds: the public board as tables of plain values, in an order that stays.

docs/data.md says what each column means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from django.db.models import BooleanField, ExpressionWrapper, Model, Q, QuerySet

from leaderboard.kit.json_types import JsonDict
from leaderboard.metrics.board_numbers import NUMBERS
from leaderboard.metrics.number import Number
from leaderboard.models import (
    Kernel,
    LanguageModel,
    Moderation,
    Problem,
    PublishedResult,
    Run,
    Submission,
    Summary,
    Visibility,
)
from leaderboard.models.generation_usage import COUNTS
from leaderboard.models.runs import FINAL
from leaderboard.models.runs import SETTING as SETTING_ORDER
from leaderboard.publishing import training_set
from leaderboard.read_model import boards
from leaderboard.read_model.columns import RankedRow, placed, usual_sort
from leaderboard.read_model.withholding import hushed_message, hushed_report, is_closed_to_all

TableRow = tuple[object, ...]
# A column's kind, and where a row of the database has it if not under its own name.
Fields = Mapping[str, str | tuple[str, str]]
CHUNK = 1000


@dataclass(frozen=True, kw_only=True)
class SnapshotTable:
    """Describes a table; `kinds` by column: text, int, float, flag, time, texts, ints or json."""

    name: str
    kinds: Mapping[str, str]
    rows: Callable[[], Iterator[TableRow]]


SETTING: Fields = {
    "hardware": ("text", "hardware_id"),
    "world_size": "int",
    "size": "text",
    "dtype": "text",
    "profile": "text",
    "placement": "text",
    "judge_version": "text",
}
PROBLEMS: Fields = {
    "problem": ("int", "number"),
    "slug": "text",
    "title": "text",
    "category": "text",
    "scored": "flag",
    "unscored_reason": "text",
    "ranked_from": "int",
    "digest": "text",
}
MODELS: Fields = {
    "model": ("text", "slug"),
    "name": "text",
    "vendor": "text",
    "is_baseline": "flag",
}
SUBMISSIONS: Fields = {
    "submission": ("int", "id"),
    "model": ("text", "model__slug"),
    "harness": "text",
    "k": "int",
    "step_budget": "int",
    "cost_usd": "float",
    "trust": "text",
    "moderation": "text",
    "moderation_reason": "text",
    "ranked": "flag",
    "notes": "text",
    "link": "text",
    "licence": "text",
    "withholds_source": "flag",
    "manifest": "json",
    "created_at": "time",
}
KERNELS: Fields = {
    "kernel": ("int", "id"),
    "submission": ("int", "submission_id"),
    "problem": ("int", "problem_id"),
    "attempt": "int",
    "step": "int",
    "backend": "text",
    "older_task": "text",
    "digest": ("text", "source_id"),
    "source_bytes": ("int", "source__size_bytes"),
    "languages": ("text", "source__found__names"),
    **{name: ("int", f"making__{name}") for name in COUNTS},
    "cost_usd": ("float", "making__cost_usd"),
    "wall_s": ("float", "making__wall_s"),
    "ended": ("text", "making__ended"),
}
RUNS: Fields = {
    "run": ("text", "id"),
    "kernel": ("int", "kernel_id"),
    "submission": ("int", "kernel__submission_id"),
    "problem": ("int", "kernel__problem_id"),
    "problem_digest": "text",
    **SETTING,
    "device": "text",
    "status": "text",
    "counts": "flag",
    "verdict": "text",
    "phase": "text",
    "message": "text",
    "cause": "text",
    "evidence": "text",
    "flags": "texts",
    "ranks": "ints",
    "kernel_us": "float",
    "baseline_us": "float",
    "speedup": "float",
    "speedup_low": "float",
    "speedup_high": "float",
    "bound_us": "float",
    "limiter": "text",
    "utilisation": "float",
    "mechanisms": "texts",
    "isolation": "text",
    "environment": "json",
    "host": "text",
    "tries": "int",
    "created_at": "time",
    "started_at": "time",
    "finished_at": "time",
}
SUMMARIES: Fields = {
    "submission": ("int", "submission_id"),
    "problem": ("int", "problem_id"),
    **SETTING,
    "ranked": "flag",
    "made": "int",
    "correct": "int",
    "best_speedup": "float",
    "best_run": ("text", "best_run_id"),
    "attempts": "json",
}
CLAIMS: Fields = {
    "publication": ("text", "publication__slug"),
    "date": ("text", "publication__date"),
    "model": ("text", "model__slug"),
    "harness": "text",
    "category": "text",
    "problems": "int",
    "correct_at_1": "int",
    "correct_at_3": "int",
    "fast_at_1": "int",
    "fast_at_3": "int",
}


def _reads(number: Number) -> Callable[[RankedRow], object]:
    return lambda row: number.value(row.entry)


# A column's kind, and what it holds of a row of a board.
PLACES: Mapping[str, tuple[str, Callable[[RankedRow], object]]] = {
    "place": ("text", lambda row: row.place),
    "submission": ("int", lambda row: row.entry.submission),
    "model": ("text", lambda row: row.entry.slug),
    "harness": ("text", lambda row: row.entry.harness),
    "baseline": ("flag", lambda row: row.entry.baseline),
    "scored": ("int", lambda row: row.entry.score.scored),
    **{one.snapshot: (one.kind, _reads(one)) for one in NUMBERS if one.snapshot},
    "pass_at_1_low": ("float", lambda row: _end(row, "low")),
    "pass_at_1_high": ("float", lambda row: _end(row, "high")),
}
# Of a report, what is a column of its run already, and what ranks printed.
LEFT_OUT = ("logs", "environment", "verdict", "message", "evidence", "flags", "mechanisms")


# Practice is of no use to who computes scores anew.
OF_PUBLIC = {"visibility": Visibility.PUBLIC, "is_practice": False}


# Whether the public may not read the source of a run.
CLOSED = ExpressionWrapper(is_closed_to_all(), output_field=BooleanField())


def _flag(condition: Q) -> ExpressionWrapper[Q]:
    return ExpressionWrapper(condition, output_field=BooleanField())


def _submissions() -> QuerySet[Submission]:
    ranked = _flag(Q(moderation=Moderation.ACCEPTED))
    return Submission.objects.filter(**OF_PUBLIC).annotate(ranked=ranked)


def _kernels() -> QuerySet[Kernel]:
    return Kernel.objects.filter(**{f"submission__{name}": of for name, of in OF_PUBLIC.items()})


def _runs() -> QuerySet[Run]:
    """Return the finished runs: a snapshot must not depend on how far others are."""
    public = {f"kernel__submission__{name}": of for name, of in OF_PUBLIC.items()}
    ended = Run.objects.filter(**public, status__in=FINAL)
    return ended.annotate(counts=_flag(Q(pk__in=Run.objects.counted().values("pk"))))


def _summaries() -> QuerySet[Summary]:
    ranked = _flag(Q(submission__moderation=Moderation.ACCEPTED, problem__scored=True))
    public = Summary.objects.filter(submission__visibility=Visibility.PUBLIC)
    return public.annotate(ranked=ranked)


def _told_runs() -> Iterator[TableRow]:
    """Yield the rows of runs; where the public may not read the source, without what quotes it."""
    every = _of("runs", {**RUNS, "closed": "flag"}, lambda: _runs().annotate(closed=CLOSED))
    names = list(every.kinds)
    for row in every.rows():
        told: JsonDict = dict(zip(names, row, strict=True))
        if told.pop("closed"):
            told["message"] = hushed_message(told["verdict"], told["cause"], told["message"])
            told["evidence"] = None
        yield tuple(told.values())


def _reports() -> Iterator[TableRow]:
    done = _runs().annotate(closed=CLOSED).exclude(report_packed=None).order_by("pk")
    for run in done.only("report_packed").iterator(chunk_size=CHUNK // 10):
        report = run.report or {}
        report = hushed_report(report) if vars(run)["closed"] else report
        yield str(run.pk), {name: report[name] for name in report if name not in LEFT_OUT}


def _places() -> Iterator[TableRow]:
    """Yield every board as the site shows it first: one setting after the other, best first."""
    for setting in sorted(boards.known_settings(), key=str):
        scored = Problem.objects.scored(setting.world_size).count()
        own = tuple(getattr(setting, path) for _, path in _paths(SETTING).values())
        for row in placed(boards.judged(setting, scored), usual_sort(setting)):
            yield own + tuple(read(row) for _, read in PLACES.values())


def _end(row: RankedRow, name: str) -> float | None:
    """Return the `low` or the `high` end of the interval of pass@1."""
    return getattr(row.entry.score.pass_at_1_interval, name, None)


def _of(
    name: str, fields: Fields, query: Callable[[], QuerySet[Model]], *order: str
) -> SnapshotTable:
    named = _paths(fields)
    paths = [path for _, path in named.values()]

    def rows() -> Iterator[TableRow]:
        found = query().order_by(*(order or ("pk",)))
        return iter(found.values_list(*paths).iterator(chunk_size=CHUNK))

    return SnapshotTable(
        name=name, kinds={key: kind for key, (kind, _) in named.items()}, rows=rows
    )


def _paths(fields: Fields) -> dict[str, tuple[str, str]]:
    """Return of each column its kind, and where a row of the database has it."""
    return {key: (f, key) if isinstance(f, str) else f for key, f in fields.items()}


PLACE_KINDS = {
    **{name: kind for name, (kind, _) in _paths(SETTING).items()},
    **{name: kind for name, (kind, _) in PLACES.items()},
}
TABLES = (
    _of("problems", PROBLEMS, Problem.objects.all),
    _of("models", MODELS, LanguageModel.objects.visible, "slug"),
    _of("submissions", SUBMISSIONS, _submissions),
    _of("kernels", KERNELS, _kernels),
    replace(_of("runs", RUNS, _runs), rows=_told_runs),
    SnapshotTable(name="reports", kinds={"run": "text", "report": "json"}, rows=_reports),
    _of("summaries", SUMMARIES, _summaries, "submission_id", "problem_id", *SETTING_ORDER),
    SnapshotTable(name="places", kinds=PLACE_KINDS, rows=_places),
    SnapshotTable(name="training", kinds=training_set.KINDS, rows=training_set.rows),
    _of("claims", CLAIMS, PublishedResult.objects.all, "publication_id", "pk"),
)
