"""Print how long each command of a site with the shipped data held SQLite's write lock, as JSON:
its name and, of the longest transaction, milliseconds of the processor. Others add no time so."""

from __future__ import annotations

import gc
import json
import sys
import time
from io import StringIO

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from leaderboard.models import Problem  # noqa: E402

SHIPPED = ("migrate -v0", "sync_problems", "import_published", "import_reports")


class LockTimes:
    """Keeps the longest time from a BEGIN IMMEDIATE to its end, in ms. Traces statements."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._began_at: float | None = None

    def __call__(self, statement: str) -> None:
        now = time.thread_time()
        if statement.startswith("BEGIN IMMEDIATE"):
            self._began_at = now
        elif self._began_at is not None and statement in {"COMMIT", "ROLLBACK"}:
            self.longest_ms = max(self.longest_ms, 1000 * (now - self._began_at))
            self._began_at = None


def measured(command: str) -> float:
    times = LockTimes()
    connection.connection.set_trace_callback(times)
    call_command(*command.split(), stdout=StringIO())
    connection.connection.set_trace_callback(None)
    return times.longest_ms


def main(folder: str) -> None:
    for command in SHIPPED:
        call_command(*command.split(), stdout=StringIO())
    Problem.objects.update(summary="changed")  # sync_problems has something to do
    gc.freeze()  # a command begins without what those before it have left
    commands = (
        *("sync_problems", "import_published", "import_reports", "rebuild_summary", "sweep"),
        *("make_snapshot once", f"backup {folder}/backup", "rejudge --stale --wait"),
    )
    sys.stdout.write(json.dumps({command: measured(command) for command in commands}))


main(sys.argv[1])
