"""`make down`: stop what `make up` started, and nothing else."""

from __future__ import annotations

from tooling import processes, services
from tooling.console import step


def down() -> None:
    """The worker first, so that the site can still note an evaluation that it gives back."""
    for name in (services.WORKER, services.SITE):
        with step(name) as notes:
            stopped = processes.stop(name)
            notes.append(f"stopped, pid {stopped.pid}" if stopped else "was not running")
