"""Has results judged again: new runs of the same kernels, beside the old ones, which are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Q

from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    DataVersion,
    Kernel,
    Moderation,
    Problem,
    Run,
    Source,
    Submission,
    WorkerHost,
)
from leaderboard.models.abilities import in_words, is_able
from leaderboard.models.choices import CURRENT_JUDGE
from leaderboard.models.runs import RunQuerySet
from leaderboard.models.staleness import ALIKE, idle, stale, unsettled
from leaderboard.submissions.moderation import note
from leaderboard.submissions.practice import check_queue, check_quota
from leaderboard.submissions.queue import Target, enqueue, needs_of
from leaderboard.submissions.target_selection import check_problem_has

MOST_DIGITS = 15
NOT_HELD = "the source is not held here: fill it in with import_submission --from-git"
# What is read of a run: sources only of those whose needs are asked for.
READS = (
    *(name.removesuffix("_id") for name in ALIKE),
    *("kernel__problem", "kernel__backend", "kernel__source", "kernel__submission__moderation"),
)
Hosts = dict[str, list[WorkerHost]]


class Ground(NamedTuple):
    """Holds what plans are made from, read once: the problems, the hosts that serve, and the
    digests of sources that are not held here."""

    problems: dict[int, Problem]
    hosts: Hosts
    elsewhere: set[str]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Says which results are meant: `stale` ones alone, of one problem or submission where it is
    given. With `waits` those too whose hosts are silent: their runs wait. `unsettled` adds to the
    stale ones those without a result."""

    stale: bool = True
    problem: Problem | None = None
    submission: Submission | None = None
    waits: bool = False
    unsettled: bool = False

    @property
    def runs(self) -> RunQuerySet:
        found = Run.objects.order_by()
        if self.problem:
            found = found.filter(kernel__problem=self.problem)
        if self.submission:
            found = found.filter(kernel__submission=self.submission)
        if self.unsettled:
            either = Q(pk__in=stale(found).values("pk")) | Q(pk__in=unsettled(found).values("pk"))
            return found.filter(either)
        return stale(found) if self.stale else idle(found)

    def __str__(self) -> str:
        parts = ["stale results" if self.stale else "all results"]
        parts += ["and those without one"] if self.unsettled else []
        parts += [f"of {self.problem.slug}"] if self.problem else []
        parts += [f"of submission {self.submission.pk}"] if self.submission else []
        return " ".join(parts)


@dataclass(kw_only=True)
class Plan:
    """Holds what can be judged again, and by reason the numbers of problems of what cannot."""

    ready: list[tuple[Kernel, Target]] = field(default_factory=list)
    left_out: dict[str, list[int]] = field(default_factory=dict)

    def add(self, other: Plan) -> None:
        self.ready += other.ready
        for why, numbers in other.left_out.items():
            self.left_out.setdefault(why, []).extend(numbers)


def selection(
    *, stale: bool, problem: str = "", submission: str = "", waits: bool = False
) -> Selection:
    """Return what these words of a form or a command name: a problem by slug or number, a
    submission by number. Raises RequestError."""
    if not (stale or problem or submission):
        raise RequestError(
            "nothing_selected",
            "Nothing says which results are to be judged again.",
            "Ask for the stale ones, or name a problem or a submission.",
        )
    return Selection(
        stale=stale,
        problem=_problem(problem) if problem else None,
        submission=_submission(submission) if submission else None,
        waits=waits,
    )


def _problem(text: str) -> Problem:
    if found := Problem.objects.called(text):
        return found
    fix = "Give a number or a slug, such as 1 or allreduce."
    raise RequestError("unknown_problem", f"There is no problem {text[:80]!r}.", fix, status=404)


def _submission(text: str) -> Submission:
    is_number = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    found = Submission.objects.filter(pk=int(text)).first() if is_number else None
    if found is None:
        message, fix = f"There is no submission {text[:80]!r}.", "Give the number of one."
        raise RequestError("unknown_submission", message, fix, status=404)
    return found


def planned(chosen: Selection) -> Plan:
    """Plan a run for each kernel and target that can be queued now, and list all others."""
    return _planned(chosen, _ground())


def _ground() -> Ground:
    elsewhere = Source.objects.filter(packed=None).values_list("pk", flat=True)
    problems = {problem.pk: problem for problem in Problem.objects.all()}
    return Ground(problems=problems, hosts=_hosts(), elsewhere=set(elsewhere))


def _planned(chosen: Selection, ground: Ground) -> Plan:
    problems, hosts, elsewhere = ground
    plan = Plan()
    for run in _newest_of_each(chosen.runs):
        run.kernel.problem = problems[run.kernel.problem_id]
        target = _target(run)
        is_held = run.kernel.source_id not in elsewhere
        why = (
            _obstacle(run.kernel, target, None if chosen.waits else hosts) if is_held else NOT_HELD
        )
        if why:
            plan.left_out.setdefault(why, []).append(run.kernel.problem_id)
        else:
            plan.ready.append((run.kernel, target))
    return plan


def rejudge(chosen: Selection, actor: AbstractBaseUser | None) -> Plan:
    """Queue what can be judged, with an entry in the audit log; return what was done. Repeated
    while those runs wait it queues nothing more.

    Each problem of a submission has a transaction of its own: meanwhile others can write.
    """
    found = chosen.runs.values_list("kernel__submission", "kernel__problem")
    ground, done = _ground(), Plan()
    for submission_id, problem_id in sorted(set(found)):
        own = Submission.objects.filter(pk=submission_id)
        with transaction.atomic():
            # Whoever asks for the same at the same moment waits, and finds these runs queued.
            submission = own.select_for_update().get()
            part = replace(chosen, submission=submission, problem=ground.problems[problem_id])
            plan = _planned(part, ground)
            if plan.ready:
                enqueue(plan.ready)
                DataVersion.objects.bump()
        done.add(plan)
    if done.ready:
        note(actor, "rejudge", str(chosen), {"runs": len(done.ready)})
    return done


def rerun(submission: Submission, actor: AbstractBaseUser) -> Plan:
    """Queue again, for its owner, what is stale or ended without a result. What has a result of
    today is not: who could have it judged again would be ranked by luck. Raises RequestError where
    more runs of an account would wait than may."""
    chosen = Selection(submission=submission, unsettled=True, waits=True)
    with transaction.atomic():
        if ready := planned(chosen).ready:
            if submission.is_practice:
                check_quota(submission.owner, len(ready))
            check_queue(submission.owner, len(ready))
        return rejudge(chosen, actor)


def _newest_of_each(runs: RunQuerySet) -> Iterable[Run]:
    read = runs.select_related("kernel__submission").only(*READS)
    found: dict[tuple[object, ...], Run] = {}
    for run in read.order_by("kernel__problem", "kernel", "-created_at", "-id").iterator():
        found.setdefault(tuple(getattr(run, name) for name in ALIKE), run)
    return found.values()


def _target(run: Run) -> Target:
    own = {name: getattr(run, name) for name in ALIKE[2:]}
    return Target(hardware=run.hardware_id, **own)


def _hosts() -> Hosts:
    """Return the living hosts that serve with this release's judge, by class of hardware."""
    found: Hosts = {}
    for host in WorkerHost.objects.serving().filter(judge_version=CURRENT_JUDGE):
        found.setdefault(host.queue, []).append(host)
    return found


def _obstacle(kernel: Kernel, target: Target, hosts: Hosts | None) -> str:
    """Say why a kernel cannot be judged again as it was; empty where it can. None for hosts: they
    may come."""
    if kernel.submission.moderation == Moderation.INVALIDATED:
        return f"submission {kernel.submission_id} is invalidated: dispute it first"
    if kernel.submission.moderation == Moderation.WITHDRAWN:
        return f"submission {kernel.submission_id} was withdrawn by its owner"
    if kernel.problem.is_withdrawn:
        return "the problem is no longer part of the benchmark"
    try:
        check_problem_has(kernel.problem, target.world_size, target.size, target.dtype)
    except RequestError as error:
        return error.message
    return "" if hosts is None else _missing(hosts.get(target.hardware, ()), kernel, target)


def _missing(hosts: Sequence[WorkerHost], kernel: Kernel, target: Target) -> str:
    if not hosts:
        return f"no host of {target.hardware} with judge {CURRENT_JUDGE} is alive"
    needs = frozenset(needs_of(kernel, target).split())
    if any(is_able(host, needs, target.placement) for host in hosts):
        return ""
    return f"no living host of {target.hardware} offers {in_words(needs)}"
