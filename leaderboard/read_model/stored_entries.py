"""Make a row of a board of a LeaderboardRow and the submission that it is of."""

from __future__ import annotations

from typing import Any

from leaderboard.kit.links import url
from leaderboard.metrics import scores
from leaderboard.metrics.board_numbers import SUMMED
from leaderboard.metrics.intervals import Interval, geometric_interval
from leaderboard.metrics.scores import Score
from leaderboard.metrics.verdicts import trust_in
from leaderboard.read_model.details import LazyColumns
from leaderboard.read_model.entries import BoardRow
from leaderboard.read_model.leaderboard_rows import Totals
from leaderboard.read_model.setting import Setting

StoredRow = tuple[Any, ...]
FIELDS = (
    "submission_id",
    "submission__model__name",
    "submission__model__slug",
    "submission__model__vendor",
    "submission__model__is_baseline",
    "submission__harness",
    "submission__trust",
    "submission__created_at",
    "submission__cost_usd",
    "submission__k",
    "submission__withholds_source",
)
HARNESS, BASELINE, K = (
    FIELDS.index(name)
    for name in ("submission__harness", "submission__model__is_baseline", "submission__k")
)


def score_of_totals(totals: Totals, scored: int, k: int, setting: Setting, p: float) -> Score:
    return scores.score_of(totals.sums, scored, k=k, p=p, is_timed=setting.is_timed)


def entry_of_row(row: StoredRow, score: Score, totals: Totals, details: LazyColumns) -> BoardRow:
    """Return the row of a board that FIELDS, their score and totals make."""
    submission, model, slug, vendor, baseline, harness, trust, *rest = row[: len(FIELDS)]
    created, cost, _, withheld = rest
    return BoardRow(
        model=model,
        slug=slug,
        vendor=vendor,
        harness=harness,
        trust=trust_in(trust, is_timed=score.is_timed),
        url=url("submission", submission),
        date=created.isoformat(),
        score=score,
        modes=totals.modes,
        backends=tuple(totals.backends),
        numbers={one.key: one.of_sum(totals.numbers[one.key], score) for one in SUMMED},
        cost_usd=cost,
        made=totals.made,
        speedup_interval=_speedup_interval(totals, score),
        dominant=totals.dominant if score.is_timed else None,
        outcomes=totals.outcomes,
        baseline=baseline,
        submission=submission,
        withheld=withheld,
        details=details,
    )


def _speedup_interval(totals: Totals, score: Score) -> Interval | None:
    sums, n = totals.sums, totals.sums.correct if score.is_timed else 0
    return geometric_interval(sums.log_speedup, totals.log_squares, n)
