"""Accepts kernels, all of an upload or nothing: the only writer of submissions and kernels."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from leaderboard.kit.plain_names import normal
from leaderboard.kit.request_error import Faults, RequestError
from leaderboard.models import (
    DataVersion,
    Hardware,
    Harness,
    Kernel,
    LanguageModel,
    Problem,
    Run,
    Source,
    Submission,
    Visibility,
    WorkerHost,
)
from leaderboard.models.model_names import known_as, model_slug
from leaderboard.submissions.archives import shown
from leaderboard.submissions.attempt_archives import Place, Told
from leaderboard.submissions.embargo import embargo_end
from leaderboard.submissions.generation_usage import check_told, cost_told, store_told
from leaderboard.submissions.language_models import check_language_model, language_model
from leaderboard.submissions.metadata import check_metadata, check_names, check_steps
from leaderboard.submissions.practice import check_queue, check_quota
from leaderboard.submissions.queue import Target, enqueue
from leaderboard.submissions.sources import (
    Candidate,
    HandedIn,
    checked_problem,
    combined,
    kernels_in,
)
from leaderboard.submissions.superseded_tasks import older_tasks
from leaderboard.submissions.target_selection import Machines, TargetRequest, target_for
from leaderboard.submissions.teams import team_for
from leaderboard.submissions.uploads import used

# What is stored as it was said.
KEPT = (
    *("harness", "step_budget", "visibility", "public_from", "is_practice", "notes", "link"),
    *("licence", "withholds_source"),
)
_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """Holds what a submission says of itself; published trees may say the model instead. What is
    practice is judged after all that is ranked, within a quota, and counts nowhere. What is hidden
    may become public by itself from a date on."""

    harness: Harness
    model: str = ""
    vendor: str = ""
    step_budget: int | None = None
    visibility: Visibility = Visibility.PUBLIC
    notes: str = ""
    cost_usd: float | None = None
    link: str = ""
    licence: str = ""
    withholds_source: bool = False
    is_practice: bool = False
    public_from: datetime | None = None
    team: str = ""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """Holds what was stored; `is_new` is False where an earlier request with this idempotency key
    made it, `left_out` names files of withdrawn problems."""

    submission: Submission
    runs: Sequence[Run]
    is_new: bool
    left_out: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class _Checked:
    candidate: Candidate
    problem: Problem
    target: Target | None
    older_task: str = ""

    @property
    def place(self) -> Place:
        return self.problem.number, self.candidate.attempt, self.candidate.step


def accept(
    owner: AbstractBaseUser,
    metadata: Metadata,
    handed_in: HandedIn,
    requested: TargetRequest,
    *,
    idempotency_key: str | None = None,
    with_runs: bool = True,
) -> Accepted:
    """Store a submission and queue its runs, or raise RequestError and store nothing."""
    digest = _request_digest(metadata, handed_in, requested)
    is_read = handed_in.fault is None
    if idempotency_key and is_read and (earlier := _earlier(owner, idempotency_key, digest)):
        return earlier
    metadata, checked, left_out = check(
        owner, metadata, handed_in, requested if with_runs else None
    )
    told = handed_in.told
    try:
        with transaction.atomic():
            if metadata.is_practice:
                check_quota(owner, len(checked))
            check_queue(owner, sum(item.target is not None for item in checked))
            submission = _store(owner, metadata, checked, told, (idempotency_key, digest))
            if (upload := handed_in.upload) and not upload.mark_used(submission):
                raise used(upload)
            runs = _store_kernels(submission, checked, told)
            DataVersion.objects.bump()
    except IntegrityError:
        # The same request may have arrived twice at the same moment.
        if idempotency_key and (earlier := _earlier(owner, idempotency_key, digest)):
            return earlier
        raise
    return Accepted(submission=submission, runs=runs, is_new=True, left_out=left_out)


def check(
    owner: AbstractBaseUser,
    metadata: Metadata,
    handed_in: HandedIn,
    requested: TargetRequest | None,
) -> tuple[Metadata, list[_Checked], list[str]]:
    """Return what is to be stored: the metadata, completed; the kernels; the files that are left
    out. Raises RequestError with all that is wrong."""
    faults, checked = Faults(), list[_Checked]()
    if handed_in.fault:
        faults.found.append(handed_in.fault)
    left_out = [one.where for one in handed_in.candidates if one.is_withdrawn]
    candidates = [one for one in handed_in.candidates if not one.is_withdrawn]
    with faults.gathered():
        check_names("", "", metadata.notes)
    if handed_in.candidates or metadata.model:
        with faults.gathered():
            metadata = _completed(metadata, handed_in.candidates, left_out, handed_in.told)
            _check_model(owner, metadata)
    with faults.gathered():
        team_for(owner, metadata.team)
    with faults.gathered():
        check_metadata(metadata.harness, asdict(metadata))
    with faults.gathered():
        end = embargo_end(metadata.public_from, metadata.visibility)
        metadata = replace(metadata, public_from=end)
    with faults.gathered():
        last = max((one.step for one in handed_in.candidates), default=1)
        check_steps(metadata.harness, metadata.step_budget, last)
    if candidates or not (handed_in.fault or handed_in.is_part):
        with faults.gathered():
            checked = _check_candidates(candidates, handed_in.told, requested)
            places = {one.place: one.candidate.digest for one in checked}
            if handed_in.fault is None:
                check_told(handed_in.told, places)
    faults.raise_any()
    return metadata, checked, left_out


def faults_beside(
    owner: AbstractBaseUser,
    metadata: Metadata,
    fields: Mapping[str, Any],
    requested: TargetRequest,
) -> dict[str, str]:
    """Return what else is wrong, by field, with a request of which only these `fields` could be
    read."""
    is_whole = fields.get("archive") or (fields.get("source") and fields.get("problem"))
    handed_in = kernels_in(fields) if is_whole else HandedIn(candidates=[], is_part=True)
    try:
        check(owner, metadata, handed_in, requested)
    except RequestError as error:
        return dict(error.fields)
    return {}


def _earlier(owner: AbstractBaseUser, key: str, digest: str) -> Accepted | None:
    found = Submission.objects.filter(owner=owner.pk, idempotency_key=key).first()
    if found is None:
        return None
    if found.request_digest != digest:
        raise RequestError(
            "idempotency_key_reused",
            "This idempotency key came with another request before.",
            "Use a new key for a new request.",
            status=409,
            fields={"Idempotency-Key": "came with another request before"},
        )
    return accepted_before(found)


def accepted_before(submission: Submission) -> Accepted:
    """Return the answer to a request that made a submission and comes again."""
    runs = Run.objects.filter(kernel__submission=submission).with_names().order_by("kernel_id")
    return Accepted(submission=submission, runs=list(runs), is_new=False)


def _request_digest(metadata: Metadata, handed_in: HandedIn, requested: TargetRequest) -> str:
    files = [asdict(replace(candidate, tree=None)) for candidate in handed_in.candidates]
    fields = asdict(metadata)
    # Left out as in the digests of requests from before they existed.
    for file in files:
        if file["step"] == 1:
            del file["step"]
    if metadata.cost_usd is None:
        del fields["cost_usd"]
    for name in ("link", "licence", "withholds_source", "is_practice", "team"):
        if not fields[name]:
            del fields[name]
    if metadata.public_from is None:
        del fields["public_from"]
    target = asdict(requested)
    if requested.placement is None:
        del target["placement"]
    parts = [fields, files, target, *filter(None, [handed_in.told.digest])]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _completed(
    metadata: Metadata, candidates: Sequence[Candidate], left_out: Sequence[str], told: Told
) -> Metadata:
    """Add the model that published trees name, by the name that the site has for it, and notes of
    that and of what was left out or not read."""
    models = {c.tree.model for c in candidates if c.tree and c.tree.model}
    if not metadata.model and len(models) != 1:
        named = f": {', '.join(sorted(models))}" if models else ""
        raise RequestError(
            "no_one_model",
            f"The kernels' folders name {'several models' if models else 'no model'}{named}.",
            "Give model; kernels of several models are several submissions.",
            fields={"model": "needed"},
        )
    notes, named = [metadata.notes], normal(metadata.model or models.pop())
    if known_as(named) != named:
        notes.append(f"Handed in as {shown(named)}.")
    if left_out:
        notes.append(f"Left out, since PKB has withdrawn the problem: {', '.join(left_out)}.")
    notes += told.notes
    return replace(metadata, model=known_as(named), notes="\n\n".join(filter(None, notes)))


def _check_model(owner: AbstractBaseUser, metadata: Metadata) -> None:
    if not model_slug(metadata.model):
        raise RequestError(
            "bad_model_name",
            "The model's name has no letter from a to z and no digit.",
            "Name it in Latin letters; its address is made of them.",
            fields={"model": "needs a letter from a to z or a digit"},
        )
    faults = Faults()
    with faults.gathered():
        check_names(metadata.model, metadata.vendor)
    with faults.gathered():
        hidden_for = _hidden_for(owner, metadata)
        check_language_model(metadata.model, metadata.vendor, hidden_for=hidden_for)
    faults.raise_any()


def _check_candidates(
    candidates: Sequence[Candidate], told: Told, requested: TargetRequest | None
) -> list[_Checked]:
    """Find each one's problem and target; raise RequestError naming all that cannot be had."""
    if not candidates:
        says, fix = "There is no kernel in the request.", "Send at least one."
        raise RequestError("no_kernel", says, fix, fields={"archive": says})
    problems = {str(p.number): p for p in Problem.objects.all()}
    problems |= {problem.slug: problem for problem in problems.values()}
    checked, errors = [], {}
    for candidate in candidates:
        try:
            problem = checked_problem(candidate, problems)
        except RequestError as error:
            errors[candidate.where] = error
        else:
            checked.append(_Checked(candidate=candidate, problem=problem, target=None))
    if requested:
        checked = _with_targets(checked, requested, errors)
    if errors:
        raise combined(errors)
    _check_once(checked)
    older = older_tasks([(item.candidate, item.problem) for item in checked], told.lines)
    return [replace(item, older_task=task) for item, task in zip(checked, older, strict=True)]


def _with_targets(
    checked: Sequence[_Checked], requested: TargetRequest, errors: dict[str, RequestError]
) -> list[_Checked]:
    """Return the kernels with their targets; those that can have none are put among the errors."""
    served = set(WorkerHost.objects.serving().values_list("queue", flat=True))
    machines = Machines(known=list(Hardware.objects.all()), served=served)
    machines = machines.for_all(item.problem for item in checked)
    found = []
    for item in checked:
        try:
            target = target_for(item.candidate, item.problem, requested, machines)
        except RequestError as error:
            errors[item.candidate.where] = error
        else:
            found.append(replace(item, target=target))
    return found


def _check_once(checked: Sequence[_Checked]) -> None:
    counts = Counter(item.place for item in checked)
    twice = [place for place, count in counts.items() if count > 1]
    if twice:
        named = [f"problem {n} in step {step} of attempt {attempt}" for n, attempt, step in twice]
        more = f" and {len(twice) - _NAMED} more" if len(twice) > _NAMED else ""
        says = f"{'; '.join(named[:_NAMED])}{more}"
        raise RequestError(
            "duplicate_kernel",
            f"These occur more than once: {says}.",
            "Keep one kernel a problem, or put more into folders attempt_2, attempt_3, ...",
            fields={"archive": f"has more than once: {says}"},
        )


def _store(
    owner: AbstractBaseUser,
    metadata: Metadata,
    checked: Sequence[_Checked],
    told: Told,
    request: tuple[str | None, str],
) -> Submission:
    """Store the submission of a request, with the idempotency key and the digest of that."""
    key, digest = request
    cost = metadata.cost_usd
    if cost is None:
        cost = cost_told(told, {item.place[:2] for item in checked})
    return Submission.objects.create(
        model=_language_model(owner, metadata, checked),
        k=max(item.candidate.attempt for item in checked),
        cost_usd=cost,
        owner_id=owner.pk,
        team=team_for(owner, metadata.team),
        **{name: getattr(metadata, name) for name in KEPT},
        manifest=told.manifest,
        idempotency_key=key,
        request_digest=digest,
    )


def _language_model(
    owner: AbstractBaseUser, metadata: Metadata, checked: Sequence[_Checked]
) -> LanguageModel:
    candidates = [item.candidate for item in checked]
    hidden_for = _hidden_for(owner, metadata)
    return language_model(metadata.model, metadata.vendor, candidates, hidden_for=hidden_for)


def _hidden_for(owner: AbstractBaseUser, metadata: Metadata) -> int | None:
    """Return the owner whom a model that nobody knows is hidden for."""
    return owner.pk if metadata.visibility == Visibility.PRIVATE else None


def _store_kernels(submission: Submission, checked: Sequence[_Checked], told: Told) -> list[Run]:
    sources = Source.objects.keep(*(item.candidate.source for item in checked))
    kernels = [
        Kernel(
            submission=submission,
            problem=item.problem,
            attempt=item.candidate.attempt,
            step=item.candidate.step,
            backend=item.candidate.backend,
            source=source,
            older_task=item.older_task,
        )
        for item, source in zip(checked, sources, strict=True)
    ]
    Kernel.objects.bulk_create(kernels)
    store_told(submission, kernels, told)
    pairs = zip(kernels, checked, strict=True)
    return enqueue((kernel, item.target) for kernel, item in pairs if item.target)
