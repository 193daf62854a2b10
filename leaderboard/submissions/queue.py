"""Asks for evaluations: stores a queued run for each kernel and target, and tells workers of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now

from leaderboard.kit.doorbells import ring_later
from leaderboard.models import Kernel, Run
from leaderboard.models.choices import FULL
from leaderboard.submissions.kernel_needs import needs_on_gpus


@dataclass(frozen=True, kw_only=True)
class Target:
    """Says what a kernel is judged on."""

    hardware: str
    device: str
    world_size: int
    size: str
    dtype: str
    profile: str
    placement: str = FULL


def enqueue(kernels: Iterable[tuple[Kernel, Target]]) -> list[Run]:
    """Store a queued run of each kernel; workers are told once the caller's transaction holds."""
    runs = [
        Run(
            kernel=kernel,
            problem_digest=kernel.problem.digest,
            hardware_id=target.hardware,
            device=target.device,
            world_size=target.world_size,
            size=target.size,
            dtype=target.dtype,
            profile=target.profile,
            placement=target.placement,
            rung_at=Now(),
            needs=needs_of(kernel, target),
        )
        for kernel, target in kernels
    ]
    Run.objects.bulk_create(runs)
    bells = [(run.id, run.hardware_id) for run in runs]
    # A partial has no name, which Django asks for where one fails.
    transaction.on_commit(lambda: ring_later(bells), robust=True)
    return runs


def needs_of(kernel: Kernel, target: Target) -> str:
    """Return the abilities that its host must have, as a run stores them."""
    if target.device == "cpu":
        return ""
    required = kernel.problem.payload.get("requirements", {})
    found = needs_on_gpus(
        kernel.source.held_text, kernel.backend, required, target.world_size, target.placement
    )
    return f" {' '.join(sorted(found))} "
