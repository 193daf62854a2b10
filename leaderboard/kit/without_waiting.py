"""Writes what may be lost, unless somebody else holds SQLite's lock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from django.db import OperationalError, connection

from leaderboard.kit.environment import SQLITE_TIMEOUT_S


@contextlib.contextmanager
def without_waiting() -> Iterator[None]:
    """Have a write of the block fail at once, and be forgotten, where it would wait for SQLite."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            yield
        except OperationalError:
            return
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {1000 * SQLITE_TIMEOUT_S}")
