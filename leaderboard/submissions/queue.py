"""Asks for evaluations: a queued run for a kernel and a setting, and the bell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.utils import timezone

from leaderboard.celery import ring
from leaderboard.models import Kernel, Run


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a kernel is judged on."""

    hardware: str
    device: str
    world_size: int
    size: str
    dtype: str
    profile: str


def enqueue(kernels: Iterable[tuple[Kernel, Setting]]) -> list[Run]:
    """Make a queued run of each kernel; the bell rings once the caller's transaction holds."""
    now = timezone.now()
    runs = [
        Run(
            kernel=kernel,
            problem_digest=kernel.problem.digest,
            hardware_id=setting.hardware,
            device=setting.device,
            world_size=setting.world_size,
            size=setting.size,
            dtype=setting.dtype,
            profile=setting.profile,
            rung_at=now,
        )
        for kernel, setting in kernels
    ]
    Run.objects.bulk_create(runs)
    for run in runs:
        transaction.on_commit(partial(ring, run.id, run.hardware_id), robust=True)
    return runs
