"""What was judged of one problem: best kernels, attempts, failures, and how it scales."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leaderboard import boards, scores
from leaderboard.boards import Setting
from leaderboard.models import Problem, Submission, Summary

KERNEL_NUMBERS = ("speedup", "speedup_low", "speedup_high", "kernel_us", "baseline_us")
LIGHT = (
    *("submission", "problem", *boards.SETTING_FIELDS, "made", "correct", "best_speedup"),
    *("submission__harness", "submission__model__name", "submission__model__is_baseline"),
    *("hardware__title", "best_run__kernel_us", "best_run__baseline_us"),
)


@dataclass(frozen=True, kw_only=True)
class Results:
    """Of one problem in every setting; `rows` are those of `setting`, best first.

    `references` are submissions of the reference itself: shown, and counted nowhere.
    """

    setting: Setting | None
    rows: tuple[Summary, ...]
    references: tuple[Summary, ...]
    elsewhere: tuple[Summary, ...]

    @property
    def solved(self) -> list[Summary]:
        return [row for row in self.rows if row.best_run is not None]

    @property
    def made(self) -> int:
        return sum(row.made for row in self.rows)

    @property
    def correct(self) -> int:
        return sum(row.correct for row in self.rows)

    @property
    def faster(self) -> int:
        """Submissions whose best kernel is told apart from the reference, and faster."""
        return sum((row.best_run.speedup_low or 0) > 1 for row in self.solved if row.best_run)

    @property
    def modes(self) -> dict[str, int]:
        return boards.modes_of(entry for row in self.rows for entry in row.attempts)

    @property
    def commonest_failure(self) -> tuple[str, int] | None:
        failures = Counter(self.modes)
        del failures["correct"]
        return next(iter(failures.most_common(1)), None)


def summaries_of(problem: Problem) -> list[Summary]:
    """One query: every public, undisputed submission, also where the problem is not scored.
    Attempts, and most of the best run, are left for `results` to read."""
    found = Summary.objects.filter(problem=problem, submission__in=Submission.objects.ranked())
    named = found.select_related("submission__model", "hardware", "best_run")
    return list(named.only(*LIGHT))


def setting_of(row: Summary) -> Setting:
    return Setting(**{name: getattr(row, name) for name in boards.SETTING_FIELDS})


def in_view(settings: Iterable[Setting], rows: Sequence[Summary]) -> list[Setting]:
    """The site's settings, those that this problem has results in before the others."""
    own = {setting_of(row) for row in rows}
    return sorted(settings, key=lambda setting: setting not in own)


def results(rows: Sequence[Summary], setting: Setting | None) -> Results:
    """One query, for what is told of the setting alone."""
    own = [row.pk for row in rows if setting_of(row) == setting]
    found = Summary.objects.filter(pk__in=own)
    named = found.select_related("submission__model", "hardware", "best_run__kernel")
    here = list(named.defer("best_run__report_packed", "best_run__environment"))
    return Results(
        setting=setting,
        rows=tuple(scores.in_order(_by_models(here), lambda row: row.best_speedup)),
        references=tuple(row for row in here if row.submission.model.is_baseline),
        elsewhere=tuple(_by_models(row for row in rows if setting_of(row) != setting)),
    )


def _by_models(rows: Iterable[Summary]) -> list[Summary]:
    return [row for row in rows if not row.submission.model.is_baseline]


def kernel_record(row: Summary) -> dict[str, Any]:
    """The best kernel of a submission."""
    run = row.best_run
    if run is None:
        raise ValueError("a submission without a correct kernel has no best one")
    return {
        **names(row),
        "attempt": run.kernel.attempt,
        "backend": run.kernel.backend,
        "verdict": run.verdict,
        **{name: getattr(run, name) for name in KERNEL_NUMBERS},
        "bound_us": run.bound_us,
        "limiter": run.limiter,
        "utilisation": run.utilisation,
        "mechanisms": run.mechanisms,
        "kernel": run.kernel.source_id,
        "run": str(run.id),
    }


def names(row: Summary) -> dict[str, Any]:
    submission = row.submission
    return {
        "model": submission.model.name,
        "harness": submission.harness,
        "submission": submission.pk,
    }


def attempt_records(rows: Iterable[Summary]) -> list[dict[str, Any]]:
    """Every attempt; correct ones first, the fastest first."""
    found = [{**names(row), **entry} for row in rows for entry in row.attempts]
    return scores.in_order(found, lambda record: record["speedup"])


def mode_rows(rows: Iterable[Summary]) -> dict[str, Mapping[str, int]]:
    """How the attempts of each model and harness ended, the most attempts first."""
    groups: dict[str, Counter[str]] = {}
    for row in rows:
        name = f"{row.submission.model.name} ({row.submission.harness})"
        groups.setdefault(name, Counter()).update(boards.modes_of(row.attempts))
    return dict(sorted(groups.items(), key=lambda pair: -sum(pair[1].values())))


def varies(results: Results, by: str) -> bool:
    """Whether something was solved at several sizes or numbers of ranks, all else equal."""
    setting = results.setting
    if setting is None or not results.solved:
        return False
    return any(
        row.best_speedup is not None
        and replace(setting_of(row), **{by: getattr(setting, by)}) == setting
        for row in results.elsewhere
    )


def scaling(results: Results, by: str) -> dict[str, list[tuple[Any, float]]]:
    """Best speedup of each submission over `size` or `world_size`, all else equal; of those
    judged at two or more."""
    setting = results.setting
    same = [n for n in boards.SETTING_FIELDS if n != by]
    lines: dict[str, list[tuple[Any, float]]] = {}
    for row in (*results.rows, *results.elsewhere):
        is_comparable = setting and all(getattr(row, n) == getattr(setting, n) for n in same)
        if row.best_speedup is not None and is_comparable:
            submission = row.submission
            name = f"{submission.model.name} ({submission.harness}, no. {submission.pk})"
            lines.setdefault(name, []).append((getattr(row, by), row.best_speedup))
    return {name: points for name, points in lines.items() if len(points) > 1}
