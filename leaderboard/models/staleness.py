"""Answers which results are stale: of another version of their problem, of a kernel for an older
task, or by another judge; and which count nowhere as they are practice, or of too few ranks."""

from __future__ import annotations

import functools
import operator

from django.db.models import Exists, F, OuterRef, Q

from leaderboard.models.choices import COUNTED_VERDICTS, FULL, PLACEMENTS, Status, judge_of_today
from leaderboard.models.runs import OPEN, Run, RunQuerySet

# What two runs have in common of which the later one stands for the earlier.
ALIKE = (
    *("kernel_id", "hardware_id", "device", "world_size", "size", "dtype", "profile"),
    "placement",
)
IS_TODAYS = Q(problem_digest=OuterRef("kernel__problem__digest"))
IS_JUDGED = Q(status=Status.DONE, verdict__in=COUNTED_VERDICTS)
BY_TODAYS_JUDGE = functools.reduce(
    operator.or_,
    (Q(placement=name, judge_version=judge_of_today(name)) for name, _ in PLACEMENTS),
)
PRACTICE = "a practice run"
OLDER_TASK = "written for an older task"


def outdated(
    problem_digest: str | None,
    today: str,
    judge_version: str | None,
    older_task: str,
    placement: str | None = FULL,
) -> str:
    """Say why a result is stale, `judged on an older version of the problem`; empty where it is
    not, and where there is none. `today` is the digest of the problem as it now stands,
    `older_task` what its kernel says."""
    if problem_digest is None or judge_version is None:
        return ""
    if older_task:
        return f"{OLDER_TASK}, {older_task}"
    reasons = ["on an older version of the problem"] if problem_digest != today else []
    current = judge_of_today(placement or FULL)
    if judge_version != current:
        reasons.append(f"by {judge_in_words(judge_version, current)}")
    return f"judged {' and '.join(reasons)}" if reasons else ""


def judge_in_words(version: str, current: str) -> str:
    """Return `an older judge (6, now 7)`."""
    is_older = (len(version), version) < (len(current), current)  # 9 before 10
    return f"{'an older' if is_older else 'another'} judge ({version}, now {current})"


def judge_now(version: str, placement: str) -> str:
    """Return ` (now 7)`, to stand behind another version of the judge; empty behind this one."""
    current = judge_of_today(placement)
    return "" if version == current else f" (now {current})"


def why_stale(run: Run) -> str:
    """Say it of a run, which has no result before it is done; reads its kernel's problem."""
    kernel, told = run.kernel, (run.judge_version, run.kernel.older_task, run.placement)
    return outdated(run.problem_digest, kernel.problem.digest, *told)


def consequence(run: Run) -> str:
    """Say in a sentence what a stale result still counts for; empty where it is not stale, and of
    practice, which never counted."""
    why = why_stale(run)
    if not why or run.kernel.submission.is_practice:
        return ""
    is_older = run.kernel.older_task or run.problem_digest != run.kernel.problem.digest
    counts = "it does not count" if is_older else "it counts beside results of that judge only"
    return f"{why[0].upper()}{why[1:]}: {counts}."


def too_few_ranks(world_size: int | None, ranked_from: int) -> str:
    """Say why a result counts nowhere, `judged on 2 ranks, ranked from 4`; empty where ranks are
    enough, and where there is no result."""
    if world_size is None or world_size >= ranked_from:
        return ""
    return f"judged on {world_size} ranks, ranked from {ranked_from}"


def unranked(run: Run) -> str:
    """Say it of a run in a sentence, with the problem's reason; reads its kernel's problem and
    submission."""
    if run.kernel.submission.is_practice:
        return f"{PRACTICE.capitalize()}: it does not count."
    if run.status in (Status.FAILED, Status.CANCELLED):
        return ""
    problem = run.kernel.problem
    why = too_few_ranks(run.world_size, problem.ranked_from)
    if not why:
        return ""
    reason = f", because {problem.ranked_from_reason}" if problem.ranked_from_reason else ""
    return f"{why[0].upper()}{why[1:]}: it does not count{reason}."


def not_scored(run: Run) -> str:
    """Say in sentences, before a run is judged, that its result will not be scored, and why; empty
    where it will. Reads its kernel's problem and submission."""
    if run.kernel.submission.is_practice:
        return "Practice: not scored, as it was submitted for practice."
    problem, ranks = run.kernel.problem, run.world_size
    if not too_few_ranks(ranks, problem.ranked_from):
        return ""
    reason = f", because {problem.ranked_from_reason}" if problem.ranked_from_reason else ""
    return (
        f"Practice: not scored. It runs on {ranks} ranks; the problem is ranked from"
        f" {problem.ranked_from}{reason}. Submit it for GPUs with {problem.ranked_from} ranks to"
        " have it scored."
    )


def of_other_problems(runs: RunQuerySet) -> RunQuerySet:
    """Return results of another version of their problem, which would count if judged again."""
    return runs.filter(IS_JUDGED, kernel__older_task="").exclude(
        problem_digest=F("kernel__problem__digest")
    )


def stale(runs: RunQuerySet) -> RunQuerySet:
    """Return the stale results, but for practice and older tasks, which never count, unless the
    same was judged anew or is about to be."""
    is_todays = Q(problem_digest=F("kernel__problem__digest")) & BY_TODAYS_JUDGE
    judged_anew = IS_JUDGED & BY_TODAYS_JUDGE & IS_TODAYS
    judged = runs.filter(IS_JUDGED, kernel__submission__is_practice=False, kernel__older_task="")
    return idle(judged).exclude(is_todays).exclude(Exists(_alike(judged_anew)))


def unsettled(runs: RunQuerySet) -> RunQuerySet:
    """Return those that ended without a verdict on the kernel, unless the same got one of today or
    is about to."""
    ended = runs.filter(status__in=(Status.FAILED, Status.CANCELLED))
    return idle(ended).exclude(Exists(_alike(IS_JUDGED & IS_TODAYS)))


def idle(runs: RunQuerySet) -> RunQuerySet:
    """Return those that have ended and are not about to be judged again."""
    return runs.exclude(status__in=OPEN).exclude(Exists(_alike(Q(status__in=OPEN) & IS_TODAYS)))


def _alike(which: Q) -> RunQuerySet:
    return Run.objects.filter(which, **{name: OuterRef(name) for name in ALIKE})
