"""Rows for tests of the pages, made the way the site makes them: no shortcut past a constraint."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from copy import deepcopy
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evaluator.messages.report import (
    JUDGE_VERSION,
    Environment,
    Isolation,
    OutputCheck,
    Phase,
    RankLog,
    Report,
    Trial,
    Verdict,
)
from leaderboard.management import groups
from leaderboard.models import (
    DataVersion,
    Hardware,
    Harness,
    Kernel,
    LanguageModel,
    Problem,
    Publication,
    PublishedResult,
    Run,
    Source,
    Status,
    Submission,
    Trust,
    Visibility,
    runs,
)
from leaderboard.models.choices import times_calls
from leaderboard.read_model import summary
from leaderboard.runs import report_checks
from leaderboard.runs.reports import columns_of
from tests.leaderboard.problem_payload import PAYLOAD
from tests.leaderboard.timings import make_batch_timing, make_timing

SETTING: Mapping[str, Any] = {
    "world_size": 2,
    "size": "tiny",
    "dtype": "float32",
    "profile": "hardened",
    "device": "cpu",
}


SOURCE = 'import torch\n\n\ndef solution(tensor):\n    """Copies."""\n    return tensor.clone()\n'


def make_problem(number: int = 1, slug: str = "allreduce", category: str = "tensor") -> Problem:
    digest = hashlib.sha256(slug.encode()).hexdigest()
    found, _ = Problem.objects.get_or_create(
        number=number,
        defaults={
            "slug": slug,
            "category": category,
            "category_title": f"{category.capitalize()} Parallel",
            "title": f"Problem {slug}",
            "summary": "What it does in one line.",
            "digest": digest,
            "scored": True,
            "payload": {**deepcopy(PAYLOAD), "number": number, "slug": slug},
        },
    )
    return found


def make_user(name: str = "owner") -> User:
    """Without a password, whose hashing is slow by design: tests log in by session."""
    found = User.objects.filter(username=name).first()
    return found or User.objects.create_user(name)


def make_staff(name: str = "staff") -> User:
    """Of the staff, with all that moderators and operators may."""
    found, _ = User.objects.get_or_create(username=name)
    found.is_staff = True
    found.save()
    found.groups.set(groups.make())
    return found


def make_model(name: str = "Model One", vendor: str = "Vendor") -> LanguageModel:
    slug = f"m-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    found, _ = LanguageModel.objects.get_or_create(
        slug=slug, defaults={"name": name, "vendor": vendor}
    )
    return found


def make_submission(
    model: str = "Model One",
    harness: str = Harness.ZERO_SHOT,
    *,
    k: int = 1,
    visibility: str = Visibility.PUBLIC,
    owner: str = "owner",
    withholds_source: bool = False,
) -> Submission:
    return Submission.objects.create(
        model=make_model(model),
        harness=harness,
        k=k,
        owner=make_user(owner),
        visibility=visibility,
        withholds_source=withholds_source,
        trust=Trust.VERIFIED,
        request_digest=uuid.uuid4().hex,
    )


def make_kernel(
    submission: Submission,
    problem: Problem,
    *,
    source: str = SOURCE,
    attempt: int = 1,
    step: int = 1,
    older_task: str = "",
) -> Kernel:
    return Kernel.objects.create(
        submission=submission,
        problem=problem,
        attempt=attempt,
        step=step,
        backend="pytorch",
        source=Source.objects.keep(source)[0],
        older_task=older_task,
    )


def make_run(kernel: Kernel, **changes: Any) -> Run:
    """A queued run."""
    hardware, _ = Hardware.objects.get_or_create(
        slug="cpu", defaults={"title": "CPU", "device": "cpu", "max_world_size": 8}
    )
    return Run.objects.create(
        kernel=kernel,
        problem_digest=kernel.problem.digest,
        hardware=hardware,
        **{**SETTING, **changes},
    )


def start(run: Run, phase: str = "verify", done: int = 2, total: int = 6) -> None:
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(
        status=Status.RUNNING,
        phase=phase,
        progress_done=done,
        progress_total=total,
        started_at=now,
        host="host-1",
        lease_token=uuid.uuid4().hex,
        lease_until=now + timedelta(seconds=60),
        tries=1,
    )


def finish(run: Run, report: Report) -> Run:
    """End a run with a report, and bring summary and data version along."""
    now = timezone.now()
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(
            status=Status.DONE,
            host="host-1",
            tries=1,
            started_at=now,
            finished_at=now,
            lease_token=None,
            lease_until=None,
            **columns_of(report),
        )
        run.refresh_from_db()
        summary.update(run)
        DataVersion.objects.bump()
    return run


def setting_of(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in runs.SETTING}


def make_report(
    run: Run, verdict: Verdict = Verdict.OK, speedup: float = 1.3, **changes: Any
) -> Report:
    """A report of this run; of a failure where the verdict is one."""
    is_ok = verdict is Verdict.OK
    timing = None
    if is_ok and run.is_timed:
        is_new = times_calls(changes.get("judge_version", JUDGE_VERSION))
        timing = make_timing(speedup) if is_new else make_batch_timing(speedup, run.world_size)
    values: dict[str, Any] = {
        "verdict": verdict,
        "message": "Correct in every trial." if is_ok else "Rank 1 returned a wrong sum.",
        "problem": run.kernel.problem.slug,
        "problem_digest": run.problem_digest,
        "kernel_digest": run.kernel.source_id,
        "isolation": Isolation.BWRAP,
        "environment": Environment(
            hardware="2 x CPU", host="host-1", versions={"torch": "2.13.0", "python": "3.11"}
        ),
        "phase": Phase.TIMED if is_ok else Phase.VERIFY,
        "phase_s": {"build": 0.4, "verify": 1.5, "timed": 2.25},
        "trials": tuple(make_trial(number, is_ok, run.world_size) for number in range(6)),
        "timing": timing,
        "setting": report_checks.setting_of(run),
        "logs": (RankLog(rank=0, text="compiled\n"), RankLog(rank=1, text="", dropped_bytes=0)),
    }
    return Report(**{**values, **changes})


def make_trial(number: int, passed: bool, world_size: int = 2) -> Trial:
    checks = tuple(
        OutputCheck(
            rank=rank,
            output="sum",
            elements=2048,
            mismatched=0 if passed or rank == 0 else 37,
            max_error=0.1 * (number + 1) / (rank + 1) if passed or rank == 0 else 12.5,
            verdict=Verdict.OK if passed or rank == 0 else Verdict.OUTPUT_MISMATCH,
        )
        for rank in range(world_size)
    )
    notes = ("published shape", "scale 1000", "shifted mean", "odd shape")
    return Trial(trial=number, m=64 + number, n=32, note=notes[number % 4], checks=checks)


def make_judged(
    submission: Submission,
    problem: Problem,
    verdict: Verdict = Verdict.OK,
    speedup: float = 1.3,
    **setting: Any,
) -> Run:
    """A kernel of this submission, already judged in SETTING but for what is given."""
    attempt = 1 + Kernel.objects.filter(submission=submission, problem=problem).count()
    source = f"{SOURCE}# {submission.pk} {problem.number} {attempt}\n"
    run = make_run(make_kernel(submission, problem, source=source, attempt=attempt), **setting)
    return finish(run, make_report(run, verdict, speedup))


def make_publication(model: str = "Claimed Model") -> Publication:
    """Claims for all problems and for the category `tensor`."""
    payload = {
        "note_counts": "The categories do not add up to the total.",
        "setting": {"hardware": "4x H100", "dtype": "bfloat16"},
        "failure_modes_zero_shot": {"order": ["output mismatch", "correct"], model: [59, 28]},
        "fast_p_curve_read_off_plot": {"p": [0, 1, 2], model: [0.3, 0.2, None]},
    }
    made, is_new = Publication.objects.get_or_create(
        slug="paper",
        defaults={"citation": "Authors: A Paper (2026).", "date": "2026-06", "payload": payload},
    )
    if is_new:
        for category, problems, counts in (
            (None, 87, (28, 36, 22, 27)),
            ("tensor", 17, (2, 2, 1, 2)),
        ):
            names = ("correct_at_1", "correct_at_3", "fast_at_1", "fast_at_3")
            PublishedResult.objects.create(
                publication=made,
                model=make_model(model),
                harness=Harness.ZERO_SHOT,
                category=category,
                problems=problems,
                **dict(zip(names, counts, strict=True)),
            )
    return made
