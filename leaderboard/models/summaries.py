"""Store with each result what pages read, so that they need not look at runs.

Keys have no index of their own where another begins with them, or nobody looks from that end: each
would be written too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from django.db import models
from django.db.models import Case, F, Min, OuterRef, Q, Subquery, Sum, When
from django.db.models.functions import JSONObject, Length

from evaluator.messages.job import Placement
from leaderboard.models.catalogue import Hardware, Problem
from leaderboard.models.choices import DTYPES, PLACEMENTS, PROFILES, Moderation, Visibility
from leaderboard.models.runs import SETTING, Run
from leaderboard.models.submissions import Submission

SETTING_FIELDS = tuple(name.removesuffix("_id") for name in SETTING)
AGGREGATED = (
    *("problem", *SETTING_FIELDS, "submission", "made", "correct", "best_speedup", "best_low"),
    *("utilisation", "best_run", "baseline_us", "modes"),
)
HARDENED, UPSTREAM, STANDARD = "hardened", "upstream", "standard"
# Of what is right where nothing is timed.
CHECKED = Q(placement="shared", best_speedup=None)


Row = TypeVar("Row", bound=models.Model)


class WrittenQuerySet(models.QuerySet[Row]):
    def put(self, place: Mapping[str, Any], columns: Mapping[str, Any] | None) -> None:
        """Store these columns in the one row at that place; None leaves no row there."""
        own = self.filter(**place)
        if columns is None:
            own.delete()
        elif not own.update(**columns):
            self.create(**place, **columns)


class InSetting(models.Model):
    """Declares the columns SETTING, which a row of every summary has."""

    hardware = models.ForeignKey(Hardware, models.PROTECT, db_index=False)
    world_size = models.PositiveSmallIntegerField()
    size = models.CharField(max_length=32)
    dtype = models.CharField(max_length=16, choices=DTYPES)
    profile = models.CharField(max_length=16, choices=PROFILES)
    judge_version = models.CharField(max_length=32)
    placement = models.CharField(max_length=8, choices=PLACEMENTS, default=Placement.FULL.value)

    class Meta:
        abstract = True


class SummaryQuerySet(WrittenQuerySet["Summary"]):
    def shown(self) -> SummaryQuerySet:
        """Return those of public and undisputed submissions, also at unscored problems."""
        return self.filter(
            submission__visibility=Visibility.PUBLIC, submission__moderation=Moderation.ACCEPTED
        )

    def ranked(self) -> SummaryQuerySet:
        """Return what boards show."""
        return self.shown().filter(problem__scored=True)


class Summary(InSetting):
    """Sums up one submission on one problem in one setting; written with the results it sums up.

    `attempts` lists, by attempt and of the latest counted run of its last step: {attempt, run,
    verdict, cause, speedup, low, baseline_us, backend, mechanisms, nccl, kernel, output_tokens,
    usd}, and what is MEASURED (metrics/board_numbers.py).
    There `low` is the lower end of the speedup's interval, `baseline_us` what the reference took
    beside it, `kernel` the digest of the source; `output_tokens` and `usd` are what the attempt had
    taken by then, None where nobody tells. What belongs to a time is None unless the kernel
    is correct. `made` and `correct` count attempts, `modes` by failure mode, those that occur;
    from `best_speedup` to `best_run` it tells of the fastest correct one, or where nothing is timed
    of the first. `baseline_us` is the median of what the reference took beside the correct ones.
    """

    submission = models.ForeignKey(
        Submission, models.PROTECT, related_name="summaries", db_index=False
    )
    problem = models.ForeignKey(Problem, models.PROTECT, related_name="summaries", db_index=False)
    made = models.PositiveSmallIntegerField()
    correct = models.PositiveSmallIntegerField()
    best_speedup = models.FloatField(null=True)
    best_low = models.FloatField(null=True)
    utilisation = models.FloatField(null=True)
    best_run = models.ForeignKey(Run, models.PROTECT, null=True, related_name="+", db_index=False)
    baseline_us = models.FloatField(null=True)
    modes: models.JSONField[dict[str, int], dict[str, int]] = models.JSONField()
    attempts: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField()

    objects = SummaryQuerySet.as_manager()

    class Meta:
        ordering = ("submission_id", "problem_id", *SETTING)
        verbose_name_plural = "summaries"
        indexes = (
            models.Index(fields=("profile", "hardware"), name="summary_board"),
            models.Index(fields=("problem", "hardware", "-best_speedup"), name="summary_fastest"),
            # All that a ProblemAggregate is made of: its rows lie far apart in the table.
            models.Index(fields=AGGREGATED, name="summary_aggregate"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("submission", "problem", *SETTING_FIELDS),
                name="summary_once",
            ),
            models.CheckConstraint(
                condition=Q(made__gte=1, correct__lte=F("made")), name="summary_counts_fit"
            ),
            models.CheckConstraint(
                condition=Q(correct=0, best_speedup=None, best_run=None)
                | Q(correct__gte=1, best_run__isnull=False)
                & (Q(best_speedup__isnull=False, best_speedup__gt=0) | CHECKED),
                name="summary_best_is_correct",
            ),
        )

    def __str__(self) -> str:
        return f"{self.submission_id} on {self.problem_id}: {self.correct} of {self.made}"

    @property
    def speedups(self) -> list[float]:
        """Return the speedup of each correct attempt, in the order of attempts."""
        return [entry["speedup"] for entry in self.attempts if entry["speedup"] is not None]


class LeaderboardRowQuerySet(WrittenQuerySet["LeaderboardRow"]):
    def ranked(self) -> LeaderboardRowQuerySet:
        """Return what boards show: those of public and undisputed submissions."""
        return self.filter(
            submission__visibility=Visibility.PUBLIC, submission__moderation=Moderation.ACCEPTED
        )


class LeaderboardRow(InSetting):
    """Sums up one submission in one setting, over all scored problems: the row that a board reads.

    Made of the Summary rows, with them. `attempted` counts problems, `made` attempts. `solved` has
    a letter for each number of a problem: 1 solved, 0 tried, else a space. The rest is JSON, each
    column read as a whole: `total` and, by category, `by_category` hold Totals
    (leaderboard_rows.py), `by_threshold` what of them depends on p
    (thresholds.py), `cells` a list by problem for each field of a Cell
    (tallies.py), `outcomes` how every attempt ended (kernel_filters.py).
    `digest` is the SHA-256 of `outcomes`.
    """

    submission = models.ForeignKey(
        Submission, models.PROTECT, related_name="leaderboard_rows", db_index=False
    )
    attempted = models.PositiveSmallIntegerField()
    made = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    total = models.TextField()
    solved = models.TextField()
    by_category = models.TextField()
    by_threshold = models.TextField()
    cells = models.TextField()
    outcomes = models.TextField()

    objects = LeaderboardRowQuerySet.as_manager()

    class Meta:
        ordering = ("submission_id", *SETTING)
        # Which settings there are is told by the index alone.
        indexes = (
            models.Index(
                fields=(*SETTING_FIELDS, "submission", "attempted"), name="leaderboard_row_board"
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("submission", *SETTING_FIELDS),
                name="leaderboard_row_once",
            ),
            models.CheckConstraint(
                condition=Q(attempted__gte=1), name="leaderboard_row_has_problems"
            ),
        )

    def __str__(self) -> str:
        return f"{self.submission_id} on {self.hardware_id}: {self.attempted} problems"


class ProblemAggregateQuerySet(WrittenQuerySet["ProblemAggregate"]):
    def settings(self) -> models.QuerySet[ProblemAggregate, tuple[Any, ...]]:
        """Return which settings have results at scored problems: values of SETTING, whether these
        are processors, and how many submissions tried how many problems. Hardened inputs first,
        then GPUs, what is timed, the most used by whatever judge, the standard size, and there the
        newest judge that found something correct. Boards begin with the first.

        A board compares within one setting only.
        """
        own = self.filter(problem__scored=True).order_by()
        alike = own.filter(**{name: OuterRef(name) for name in SETTING if name != "judge_version"})
        used = alike.values("hardware_id").annotate(used=Sum("submissions")).values("used")
        is_processor = Min(Case(When(hardware__device="cuda", then=0), default=1))
        grouped = own.values_list(*SETTING)
        counted = grouped.annotate(is_processor=is_processor, tried=Sum("submissions"))
        is_hardened = Case(When(profile=HARDENED, then=0), default=1)
        is_full = Case(When(placement=Placement.FULL, then=0), default=1)
        is_standard = Case(When(size=STANDARD, then=0), default=1)
        is_told = Case(When(right__gt=0, then=0), When(tried__gt=0, then=1), default=2)
        newest = (is_told, Length("judge_version").desc(), F("judge_version").desc())  # 10 after 9
        most_used = Subquery(used).desc()
        return counted.alias(right=Sum("solved")).order_by(
            is_hardened, "is_processor", is_full, most_used, is_standard, *newest, *SETTING
        )

    def usual(self) -> models.QuerySet[ProblemAggregate, Any]:
        """Return the first of the settings, as JSON by the names of SETTING."""
        return self.settings().values(usual=JSONObject(**{name: name for name in SETTING}))[:1]


class ProblemAggregate(InSetting):
    """Sums up one problem in one setting, over public and undisputed submissions: the row that
    lists of problems read.

    Made of the Summary rows, with them and whenever staff change what boards show. Baselines are
    counted nowhere. `submissions` tried it, with `made` attempts of which `correct` are right
    (`modes` by failure mode); `solved` of them did so, `faster` surely faster than the reference.
    They are of `models_tried` models, of which `models_solved` did.
    `run` is of the fastest correct kernel, else of the reference judged as a submission;
    `utilisation` is of that kernel, `usual_utilisation` the median over those that solved it.
    `baseline_us` is what the reference took beside `baseline_runs` correct kernels, those of
    baselines too: of each submission the median, and of these the median and the quartiles.
    """

    problem = models.ForeignKey(Problem, models.PROTECT, related_name="aggregates")
    submissions = models.PositiveIntegerField()
    solved = models.PositiveIntegerField()
    models_tried = models.PositiveIntegerField(default=0)
    models_solved = models.PositiveIntegerField(default=0)
    best_speedup = models.FloatField(null=True)
    utilisation = models.FloatField(null=True)
    usual_utilisation = models.FloatField(null=True)
    run = models.ForeignKey(Run, models.PROTECT, null=True, related_name="+", db_index=False)
    made = models.PositiveIntegerField()
    correct = models.PositiveIntegerField()
    faster = models.PositiveIntegerField()
    modes: models.JSONField[dict[str, int], dict[str, int]] = models.JSONField()
    baseline_runs = models.PositiveIntegerField()
    baseline_us = models.FloatField(null=True)
    baseline_low_us = models.FloatField(null=True)
    baseline_high_us = models.FloatField(null=True)

    objects = ProblemAggregateQuerySet.as_manager()

    class Meta:
        ordering = ("problem_id", *SETTING)
        constraints = (
            models.UniqueConstraint(
                fields=(*SETTING_FIELDS, "problem"), name="problem_aggregate_once"
            ),
            models.CheckConstraint(
                condition=Q(solved=0, best_speedup=None)
                | Q(solved__gte=1, run__isnull=False) & (Q(best_speedup__gt=0) | CHECKED),
                name="problem_aggregate_best_is_solved",
            ),
            models.CheckConstraint(
                condition=Q(solved__lte=F("submissions")), name="problem_aggregate_counts_fit"
            ),
        )

    def __str__(self) -> str:
        return f"{self.problem_id} on {self.hardware_id}: {self.solved} of {self.submissions}"
