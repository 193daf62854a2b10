"""Stop what `make up` started, and nothing else: `make down`."""

from __future__ import annotations

from tooling import processes, services
from tooling.console import step


def down() -> None:
    """Stop the worker, then the site, which can still note an evaluation that it gives back."""
    for name in (services.WORKER, services.SITE):
        with step(name) as notes:
            stopped = processes.stop(name)
            notes.append(f"stopped, pid {stopped.pid}" if stopped else "was not running")
