"""Finds out whether this process can serve: schema, database, broker, disk, pages."""

from __future__ import annotations

import shutil
from pathlib import Path

from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.template import TemplateDoesNotExist, TemplateSyntaxError
from django.template.loader import render_to_string
from jinja2 import TemplateError

from leaderboard.kit import doorbells
from leaderboard.models import DataVersion
from leaderboard.models.catalogue import OutdatedSummaryError

OK = "ok"
LEAST_FREE_BYTES = 64 << 20
# What pages and uploads go on without: the sweep rings again for what the broker missed.
DISPENSABLE = {"broker"}
_found_current: set[str] = set()


def checks() -> dict[str, str]:
    """Return each check by name with `ok` or, in words that hold no address, what is wrong."""
    return {
        **{"schema": _schema(), "database": _database(), "broker": _broker(), "disk": _disk()},
        "pages": _pages(),
    }


def is_ready(found: dict[str, str]) -> bool:
    return all(said == OK for name, said in found.items() if name not in DISPENSABLE)


def is_schema_current() -> bool:
    """Return whether every migration of this release is applied. Asked until it is, then never
    again in this process. Raises OperationalError where the database does not answer."""
    if connection.alias not in _found_current:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return False
        _found_current.add(connection.alias)
    return True


def _schema() -> str:
    try:
        return OK if is_schema_current() else "older than this release: run manage.py migrate"
    except Error:
        return "not known: the database does not answer"


def _database() -> str:
    try:
        DataVersion.objects.current()
    except OutdatedSummaryError:
        return "the summary is of another release: run manage.py rebuild_summary"
    except Error:
        return "does not answer"
    return OK


def _broker() -> str:
    return OK if doorbells.is_reachable() else "does not answer"


def _pages() -> str:
    """Draw the frame of every page, which asks for each static file that it names."""
    try:
        render_to_string("refused.html", {"message": "", "fix": "", "is_ours": False})
    except ValueError:
        return "static files are missing: run manage.py collectstatic"
    except (TemplateDoesNotExist, TemplateSyntaxError, TemplateError):
        return "templates do not render: they are of another release, or were changed"
    return OK


def _disk() -> str:
    folders = [Path(settings.STATE_DIR)]
    if connection.vendor == "sqlite" and Path(connection.settings_dict["NAME"]).exists():
        folders.append(Path(connection.settings_dict["NAME"]).parent)
    free = min(shutil.disk_usage(folder).free for folder in folders)
    return OK if free >= LEAST_FREE_BYTES else f"{free >> 20} MiB are free"
