"""Recognises a database that 0.1 left before its last migration: this release cannot migrate it."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.management import CommandError
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

# Migrations of 0.1 had numbers below 0100. The last one left the tables of 0100_initial.
LAST = "0095_keys_of_submissions"
FIX = (
    "this database is older than the last migration of 0.1: export with 0.1, import with 0.2. "
    "In a clone of 0.1 run `manage.py migrate` and `manage.py backup FOLDER`. "
    "In this release run `manage.py restore FOLDER --replace` and `manage.py migrate`. "
    'docs/operate.md, "From 0.1 to 0.2", has each command.'
)


def is_of_0_1(app: str, name: str) -> bool:
    """Return True for a migration of 0.1, which this release has no file of."""
    return app == "leaderboard" and name < "0100"


def is_too_old(applied: Iterable[tuple[str, str]]) -> bool:
    """Return True if migrations of 0.1 were applied, but not the last one."""
    old = {name for app, name in applied if is_of_0_1(app, name)}
    return bool(old) and LAST not in old


def refuse(*, using: str, **_: object) -> None:
    """Refuse to migrate a database that is too old, before anything is changed: pre_migrate.

    Raises CommandError, which says what to do.
    """
    if is_too_old(MigrationRecorder(connections[using]).applied_migrations()):
        raise CommandError(FIX)
