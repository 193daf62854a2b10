"""Brings in kernels with the reports that a judge made of them elsewhere, on a host without this
site. What is stored is what `evaluation.finish` would have stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePosixPath

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from leaderboard.models import (
    DataVersion,
    Hardware,
    Kernel,
    LanguageModel,
    Run,
    Source,
    Status,
    Submission,
    Trust,
    Visibility,
)
from leaderboard.read_model import summary
from leaderboard.runs import house_kernels
from leaderboard.runs.hosts import register
from leaderboard.runs.report_lines import CheckedLine, ReportLineError, checked, read

SHIPPED = Path(settings.BASE_DIR) / "fixtures" / "reports"
OWNER = "pkb"
# Kernels that test the judge, some slow on purpose: reached by their address, on no board.
JUDGE_TESTS = "Hand-written kernels"
# What all lines of a submission must agree on.
SHARED = ("vendor", "baseline", "k")


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Counts what was stored, of the runs those of `older` tasks; `stale` says where runs of other
    versions of a problem stand."""

    submissions: int
    runs: int
    older: int = 0
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReportsFile:
    """Holds the checked lines of a file, by submission; none where all are known to be stored."""

    digest: str
    groups: list[list[CheckedLine]]


def load(*paths: Path) -> list[Loaded | None]:
    """Store all lines of all files, or nothing; None for a file that was stored before. Files are
    checked before the database is locked. Raises ReportLineError."""
    files = [_read(path) for path in paths]
    with transaction.atomic():
        loaded = [_stored(file) for file in files]
        if any(loaded):
            DataVersion.objects.outdate_summary()
    summary.rebuild_if_outdated()
    return loaded


def _read(path: Path) -> ReportsFile:
    lines = read(path)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    is_known = Submission.objects.filter(owner__username=OWNER, request_digest=digest).exists()
    groups = [] if is_known else _grouped(checked(path, lines))
    return ReportsFile(digest=digest, groups=groups)


def _stored(file: ReportsFile) -> Loaded | None:
    pkb = owner()
    groups = [fresh for group in file.groups if (fresh := _without_known(pkb, group))]
    _keep_hardware(judged.run.hardware for group in groups for judged in group)
    for number, group in enumerate(groups, 1):
        _store(pkb, group, f"reports {number} {file.digest}", file.digest)
    every = [judged for group in groups for judged in group]
    stale = tuple(judged.where for judged in every if judged.is_stale)
    older = sum(bool(judged.run.kernel.older_task) for judged in every)
    made = Loaded(submissions=len(groups), runs=len(every), older=older, stale=stale)
    return made if groups else None


def owner() -> AbstractBaseUser:
    users = get_user_model().objects
    return users.filter(username=OWNER).first() or users.create_user(username=OWNER)


def _grouped(every: Iterable[CheckedLine]) -> list[list[CheckedLine]]:
    """Group by submission; raise ReportLineError where a line contradicts an earlier one."""
    groups: dict[tuple[str, str, str], list[CheckedLine]] = {}
    kernels: dict[tuple[object, ...], CheckedLine] = {}
    for judged in every:
        line = judged.line
        group = groups.setdefault(line.whose, [])
        group.append(judged)
        for name in SHARED:
            if getattr(line, name) != getattr(group[0].line, name):
                raise ReportLineError(f"{judged.where}: {name} differs from {group[0].where}")
        if house_kernels.is_house(line.model):  # each digest has a place of its own
            continue
        same = kernels.setdefault((*line.whose, *judged.place), judged)
        if (judged.source.pk, line.backend) != (same.source.pk, same.line.backend):
            raise ReportLineError(
                f"{judged.where}: another kernel than {same.where} has in its place"
            )
    return list(groups.values())


def _without_known(owner: AbstractBaseUser, group: list[CheckedLine]) -> list[CheckedLine]:
    """Return the lines whose runs are not stored: reports of house kernels come in many files, all
    for one submission, and those of a published tree in a file that grows."""
    line = group[0].line
    if line.origin is None and not house_kernels.is_house(line.model):
        return group
    moments = Run.objects.filter(
        kernel__submission__owner_id=owner.pk, kernel__source__in={one.source.pk for one in group}
    ).values_list("kernel__source_id", "finished_at")
    known = set(moments)
    return [one for one in group if (one.source.pk, one.finished_at) not in known]


def _keep_hardware(named: Iterable[Hardware]) -> None:
    """Store classes of hardware that are new, and what the first report of a class tells of it."""
    for told in {one.slug: one for one in reversed([*named])}.values():
        stored = register(told.slug, told.title)
        if "environment" not in stored.facts:
            stored.facts = {**stored.facts, **told.facts}
            stored.save(update_fields=["facts"])


def _attach(owner: AbstractBaseUser, group: Sequence[CheckedLine]) -> None:
    """Give each line the house kernel of its digest; raise ReportLineError where there is none."""
    house_kernels.load(owner.pk)
    submission, known = house_kernels.by_digest(owner.pk, {one.source.pk for one in group})
    for judged in group:
        kernel = known.get(judged.source.pk)
        if kernel is None or kernel.problem_id != judged.kernel.problem_id:
            raise ReportLineError(f"{judged.where}: no kernel of fixtures/house has this source")
        judged.run.kernel = kernel
    _trust(submission, [judged.run for judged in group if judged.counts])


def _published(owner: AbstractBaseUser, group: Sequence[CheckedLine]) -> Submission | None:
    """Return the submission that has kernels of the published tree that the lines are of."""
    line = group[0].line
    if line.origin is None:
        return None
    tree = PurePosixPath(line.origin.path).parent
    same = Submission.objects.filter(
        owner_id=owner.pk,
        harness=line.harness,
        model=LanguageModel.objects.named(line.model, line.vendor),
        kernels__source__repository=line.origin.repository,
        kernels__source__path__startswith=f"{tree}/",
    )
    return same.order_by("pk").first()


def _extend(submission: Submission, group: Sequence[CheckedLine]) -> None:
    """Add the lines' runs, and those kernels that the submission does not have yet."""
    Submission.objects.filter(pk=submission.pk).update(notes=group[0].line.notes)
    known = {
        (kernel.problem_id, kernel.attempt, kernel.step): kernel
        for kernel in Kernel.objects.filter(submission=submission)
    }
    for judged in group:
        kernel = known.get(judged.place)
        if kernel is not None and kernel.source_id != judged.source.pk:
            raise ReportLineError(f"{judged.where}: another kernel is stored in its place")
    _add_kernels(submission, group, known)
    _trust(submission, [judged.run for judged in group if judged.counts])


def _add_kernels(
    submission: Submission,
    group: Sequence[CheckedLine],
    known: Mapping[tuple[int, int, int], Kernel],
) -> None:
    """Give each line's run its kernel, which is stored if the submission does not have it."""
    Source.objects.keep_rows([judged.source for judged in group])
    fresh = {judged.place: judged.kernel for judged in group if judged.place not in known}
    for kernel in fresh.values():
        kernel.submission = submission
    Kernel.objects.bulk_create(fresh.values())
    kernels = {**known, **fresh}
    for judged in group:
        judged.run.kernel = kernels[judged.place]


def _trust(submission: Submission, runs: Iterable[Run]) -> None:
    """Trust the submission as far as its best run is trusted."""
    told = [Trust(submission.trust), *(run.trust for run in runs)]
    submission.trust = max(told, key=list(Trust).index)
    submission.save(update_fields=["trust"])


def _store(owner: AbstractBaseUser, group: Sequence[CheckedLine], key: str, digest: str) -> None:
    if house_kernels.is_house(group[0].line.model):
        _attach(owner, group)
    elif (known := _published(owner, group)) is not None:
        _extend(known, group)
    else:
        _hand_in(owner, group, key, digest)
    Run.objects.bulk_create(judged.run for judged in group)
    for judged in group:
        _finish(judged)


def _hand_in(owner: AbstractBaseUser, group: Sequence[CheckedLine], key: str, digest: str) -> None:
    """Store the submission that the lines are of, with its kernels."""
    line = group[0].line
    told = {judged.run.trust for judged in group if judged.counts}
    submission = Submission.objects.create(
        model=_model(group[0]),
        harness=line.harness,
        k=line.k,
        owner_id=owner.pk,
        visibility=Visibility.UNLISTED if line.model == JUDGE_TESTS else Visibility.PUBLIC,
        trust=max(told, key=list(Trust).index, default=Trust.SELF_REPORTED),
        notes=line.notes,
        idempotency_key=key,
        request_digest=digest,
    )
    first = min(judged.finished_at for judged in group)
    Submission.objects.filter(pk=submission.pk).update(created_at=first)
    _add_kernels(submission, group, {})


def _model(judged: CheckedLine) -> LanguageModel:
    """Return the model, which becomes a baseline, or none, where nothing was known of it."""
    line = judged.line
    model = LanguageModel.objects.named(line.model, line.vendor)
    unknown = LanguageModel.objects.filter(pk=model.pk, submissions=None, published=None)
    unknown.update(is_baseline=line.baseline)
    model.refresh_from_db()
    if model.is_baseline != line.baseline:
        kind = "a baseline" if model.is_baseline else "no baseline"
        raise ReportLineError(f"{judged.where}: {model.name} is recorded as {kind}")
    return model


def _finish(judged: CheckedLine) -> None:
    took_s = sum(max(seconds, 0.0) for seconds in judged.line.report.phase_s.values())
    began_at = judged.finished_at - timedelta(seconds=min(took_s, 86_400.0))
    Run.objects.filter(pk=judged.run.pk).update(
        status=Status.DONE,
        created_at=began_at,
        started_at=began_at,
        finished_at=judged.finished_at,
        host=judged.line.report.environment.host[:200],
        tries=1,
        **judged.columns,
    )
