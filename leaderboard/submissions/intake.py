"""Accepts kernels, all of an upload or nothing: the only writer of submissions and kernels."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from leaderboard.kit.request_error import Refusal
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
)
from leaderboard.models.catalogue import model_slug
from leaderboard.submissions.metadata import check_told
from leaderboard.submissions.queue import Setting, enqueue
from leaderboard.submissions.sources import Candidate, checked_problem, combined
from leaderboard.submissions.target_selection import Wish, setting_for


@dataclass(frozen=True, kw_only=True)
class About:
    """What a submission says of itself. Without a model, the names of published trees say it."""

    harness: Harness
    model: str = ""
    vendor: str = ""
    step_budget: int | None = None
    visibility: Visibility = Visibility.PUBLIC
    notes: str = ""
    cost_usd: float | None = None
    link: str = ""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """`is_new` is False where an earlier request with this idempotency key made it."""

    submission: Submission
    runs: Sequence[Run]
    is_new: bool
    left_out: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class _Placed:
    candidate: Candidate
    problem: Problem
    setting: Setting | None


def accept(
    owner: AbstractBaseUser,
    about: About,
    candidates: Sequence[Candidate],
    wish: Wish,
    *,
    idempotency_key: str | None = None,
    with_runs: bool = True,
) -> Accepted:
    """Store a submission and ask for a run of each kernel, or raise Refusal and store nothing."""
    digest = _request_digest(about, candidates, wish)
    if idempotency_key and (earlier := _earlier(owner, idempotency_key, digest)):
        return earlier
    left_out = [candidate.where for candidate in candidates if candidate.is_withdrawn]
    about = _completed(about, candidates, left_out)
    _check_about(about)
    candidates = [candidate for candidate in candidates if not candidate.is_withdrawn]
    placed = _place(candidates, wish if with_runs else None)
    try:
        with transaction.atomic():
            submission = _store(owner, about, placed, idempotency_key, digest)
            runs = _store_kernels(submission, placed)
            DataVersion.objects.bump()
    except IntegrityError:
        # The same request may have arrived twice at the same moment.
        if idempotency_key and (earlier := _earlier(owner, idempotency_key, digest)):
            return earlier
        raise
    return Accepted(submission=submission, runs=runs, is_new=True, left_out=left_out)


def _earlier(owner: AbstractBaseUser, key: str, digest: str) -> Accepted | None:
    found = Submission.objects.filter(owner=owner.pk, idempotency_key=key).first()
    if found is None:
        return None
    if found.request_digest != digest:
        raise Refusal(
            "idempotency_key_reused",
            "This idempotency key came with another request before.",
            "Use a new key for a new request.",
            status=409,
        )
    runs = Run.objects.filter(kernel__submission=found).with_names().order_by("kernel_id")
    return Accepted(submission=found, runs=list(runs), is_new=False)


def _request_digest(about: About, candidates: Sequence[Candidate], wish: Wish) -> str:
    files = [asdict(replace(candidate, tree=None)) for candidate in candidates]
    said = asdict(about)
    # Left out as in the digests of requests from before they could be told.
    if about.cost_usd is None:
        del said["cost_usd"]
    if not about.link:
        del said["link"]
    parts = [said, files, asdict(wish)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _completed(about: About, candidates: Sequence[Candidate], left_out: Sequence[str]) -> About:
    """With the model that published trees name, and a note of what was left out of them."""
    models = {c.tree.model for c in candidates if c.tree and c.tree.model}
    if not about.model and len(models) != 1:
        named = f": {', '.join(sorted(models))}" if models else ""
        raise Refusal(
            "no_one_model",
            f"The kernels' folders name {'several models' if models else 'no model'}{named}.",
            "Give model; kernels of several models are several submissions.",
            fields={"model": "needed"},
        )
    note = f"Left out, since PKB has withdrawn the problem: {', '.join(left_out)}."
    notes = [about.notes, note if left_out else ""]
    return replace(about, model=about.model or models.pop(), notes="\n\n".join(filter(None, notes)))


def _check_about(about: About) -> None:
    if not model_slug(about.model):
        raise Refusal(
            "bad_model_name",
            "The model's name has no letter from a to z and no digit.",
            "Name it in Latin letters; its address is made of them.",
            fields={"model": "needs a letter from a to z or a digit"},
        )
    check_told(about.harness, asdict(about))


def _place(candidates: Sequence[Candidate], wish: Wish | None) -> list[_Placed]:
    """Find each candidate's problem and setting; raises Refusal naming all that cannot be had."""
    if not candidates:
        raise Refusal("no_kernel", "There is no kernel in the request.", "Send at least one.")
    problems = {str(p.number): p for p in Problem.objects.all()}
    problems |= {problem.slug: problem for problem in problems.values()}
    known = list(Hardware.objects.all())
    placed, refused = [], {}
    for candidate in candidates:
        try:
            problem = checked_problem(candidate, problems)
            setting = setting_for(candidate, problem, wish, known) if wish else None
        except Refusal as refusal:
            refused[candidate.where] = refusal
        else:
            placed.append(_Placed(candidate=candidate, problem=problem, setting=setting))
    if refused:
        raise combined(refused)
    _check_once(placed)
    return placed


def _check_once(placed: Sequence[_Placed]) -> None:
    counts = Counter((item.problem.number, item.candidate.attempt) for item in placed)
    twice = [place for place, count in counts.items() if count > 1]
    if twice:
        number, attempt = twice[0]
        raise Refusal(
            "duplicate_kernel",
            f"Problem {number} occurs more than once in attempt {attempt}.",
            "Keep one kernel a problem, or put more into folders attempt_2, attempt_3, ...",
        )


def _store(
    owner: AbstractBaseUser, about: About, placed: Sequence[_Placed], key: str | None, digest: str
) -> Submission:
    return Submission.objects.create(
        model=_language_model(about, [item.candidate for item in placed]),
        harness=about.harness,
        k=max(item.candidate.attempt for item in placed),
        step_budget=about.step_budget,
        cost_usd=about.cost_usd,
        owner_id=owner.pk,
        visibility=about.visibility,
        notes=about.notes,
        link=about.link,
        idempotency_key=key,
        request_digest=digest,
    )


def _language_model(about: About, candidates: Sequence[Candidate]) -> LanguageModel:
    """The model of this name; what the site knows of it is not changed by a submission.

    The vendor that published trees name is that of a new one, and contradicts nothing.
    """
    vendors = {c.tree.vendor for c in candidates if c.tree and c.tree.vendor}
    likely = vendors.pop() if len(vendors) == 1 else ""
    found = LanguageModel.objects.named(about.model, about.vendor or likely)
    if found.is_baseline:
        raise Refusal(
            "baseline_model",
            f"{found.name} is a baseline of this site: nobody else hands kernels in for it.",
            "Name the model, or the person, that wrote these kernels.",
            fields={"model": "a baseline of this site"},
        )
    if about.vendor and found.vendor and about.vendor.casefold() != found.vendor.casefold():
        raise Refusal(
            "other_vendor",
            f"{found.name} is recorded as a model of {found.vendor}.",
            "Leave vendor out, or give the model a name of its own.",
            fields={"vendor": f"recorded as {found.vendor}"},
        )
    return found


def _store_kernels(submission: Submission, placed: Sequence[_Placed]) -> list[Run]:
    sources = Source.objects.keep(*(item.candidate.source for item in placed))
    kernels = [
        Kernel(
            submission=submission,
            problem=item.problem,
            attempt=item.candidate.attempt,
            backend=item.candidate.backend,
            source=source,
        )
        for item, source in zip(placed, sources, strict=True)
    ]
    Kernel.objects.bulk_create(kernels)
    pairs = zip(kernels, placed, strict=True)
    return enqueue((kernel, item.setting) for kernel, item in pairs if item.setting)
