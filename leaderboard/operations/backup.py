"""Copies what a site must not lose into a folder, and brings it back: database and snapshots.

Secrets are named there, never copied: a backup that lies somewhere shall open nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from leaderboard.kit.json_types import JsonDict
from leaderboard.models import Submission
from leaderboard.operations import older_database
from leaderboard.publishing import snapshots

MANIFEST, SNAPSHOTS = "MANIFEST.json", "snapshots"
# In the state folder: when the last backup was made, and where.
LAST = "last-backup.json"
DUMPS = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
# What the site needs besides, and what is lost with each.
SECRETS = {
    "SECRET_KEY": "another one ends sessions, links in mails, and every webhook's secret",
    "DATABASE_URL": "holds the database's password",
    "CELERY_BROKER_URL": "holds the broker's password",
    "PKB_WORKER_TOKEN": "of each judging host; the site keeps its digest only",
}


class BackupError(Exception):
    """Reports why a backup cannot be made or brought back; the text says what to do."""


def back_up(folder: Path) -> JsonDict:
    """Write a backup into a new folder, which appears whole or not at all; return its manifest."""
    if folder.exists():
        raise BackupError(f"{folder} exists: name a new folder")
    draft = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)
    try:
        manifest = _filled(draft)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)  # one a night would fill the disk
        raise
    told = {"made_at": manifest["made_at"], "folder": str(folder.parent.resolve())}
    state = Path(settings.STATE_DIR)
    state.mkdir(parents=True, exist_ok=True)
    (state / LAST).write_text(json.dumps(told))
    return manifest


def _filled(draft: Path) -> JsonDict:
    """Write everything into the folder of a backup; return its manifest."""
    # Snapshots first: one that is made meanwhile is then a row without files, never the reverse.
    if snapshots.root().is_dir():
        shutil.copytree(snapshots.root(), draft / SNAPSHOTS)
    _dump(draft / DUMPS[connection.vendor])
    manifest: JsonDict = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "software_version": settings.SOFTWARE_VERSION,
        "database": connection.vendor,
        "migrations": sorted("/".join(name) for name in _applied()),
        "files": _digests(draft),
        "secrets_to_keep_elsewhere": SECRETS,
    }
    (draft / MANIFEST).write_text(json.dumps(manifest, indent=1))
    return manifest


def prune(folder: Path, keep: int) -> list[Path]:
    """Remove all but the newest backups in a folder; return those that are gone. What is not a
    whole backup stays."""
    made = {path: _made_at(path) for path in folder.iterdir() if path.is_dir()}
    newest_first = sorted(
        (path for path in made if made[path]), key=lambda p: made[p], reverse=True
    )
    for path in newest_first[keep:]:
        shutil.rmtree(path)
    return newest_first[keep:]


def _made_at(path: Path) -> str:
    """Return when a backup was made, in UTC; nothing of another folder."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads((path / MANIFEST).read_text())["made_at"])
    return ""


def last() -> tuple[float, Path | None]:
    """Return when this site was last backed up, in seconds since 1970, and into which folder;
    0 and None where it never was."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads((Path(settings.STATE_DIR) / LAST).read_text())
        return datetime.fromisoformat(told["made_at"]).timestamp(), Path(told["folder"])
    return 0.0, None


def restore(folder: Path, *, replace: bool) -> JsonDict:
    """Bring a backup back; return its manifest. What is there is replaced only if that is said.

    Raises BackupError, before anything is changed, for a folder that is none or is damaged, of
    another kind of database, of a newer release or too old, and for a site that has submissions.
    """
    manifest = checked(folder)
    if not replace and _has_submissions():
        raise BackupError("this site has submissions: say --replace to lose them")
    _load(folder / DUMPS[connection.vendor])
    for kept in sorted((folder / SNAPSHOTS).glob("*")):
        shutil.copytree(kept, snapshots.root() / kept.name, dirs_exist_ok=True)
    return manifest


def checked(folder: Path) -> JsonDict:
    """Return a backup's manifest. Raises BackupError unless it is whole and of use here."""
    try:
        manifest: JsonDict = json.loads((folder / MANIFEST).read_text())
        files, kind, migrations = (manifest[n] for n in ("files", "database", "migrations"))
    except (OSError, ValueError, KeyError) as error:
        raise BackupError(f"{folder} is not a backup: {error!r}") from None
    if kind != connection.vendor:
        raise BackupError(f"it is of {kind}, this site has {connection.vendor}")
    if wrong := sorted(set(files.items()) ^ set(_digests(folder).items())):
        raise BackupError(f"{wrong[0][0]} is damaged, missing or not of this backup")
    applied = {(app, name) for app, _, name in (one.partition("/") for one in migrations)}
    if older_database.is_too_old(applied):
        raise BackupError(older_database.FIX)
    unknown = applied - set(MigrationLoader(None).disk_migrations or ())
    if newer := sorted(one for one in unknown if not older_database.is_of_0_1(*one)):
        raise BackupError(f"it is of a newer release, which has the migration {'/'.join(newer[0])}")
    return manifest


def _applied() -> list[tuple[str, str]]:
    return list(MigrationRecorder(connection).applied_migrations())


def _has_submissions() -> bool:
    tables = connection.introspection.table_names()
    return Submission._meta.db_table in tables and Submission.objects.exists()


def _digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file but the manifest, by its path in the folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / MANIFEST:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            found[path.relative_to(folder).as_posix()] = digest
    return found


def _dump(target: Path) -> None:
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        with sqlite3.connect(target) as copy:
            connection.connection.backup(copy)
        copy.close()
        return
    # Archives that wait in parts live for a day: their senders send them again.
    parts = "--exclude-table-data=leaderboard_upload*"
    _postgresql("pg_dump", "--format=custom", "--no-owner", parts, f"--file={target}")


def _load(source: Path) -> None:
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        with sqlite3.connect(source) as copy:
            copy.backup(connection.connection)
        copy.close()
    else:
        _replay(source)
    connection.close()  # it remembers tables that are others now


def _replay(source: Path) -> None:
    """Put a dump in the place of all tables, in one transaction. Those of a newer release go too:
    they may refer to the others, which could not be replaced then."""
    quoted = (connection.ops.quote_name(name) for name in connection.introspection.table_names())
    gone = "".join(f"DROP TABLE {name} CASCADE;\n" for name in quoted)
    connection.close()  # it could hold a lock
    with tempfile.TemporaryDirectory() as folder:
        script, drops = Path(folder, "restore.sql"), Path(folder, "drop.sql")
        drops.write_text(gone)
        _run("pg_restore", "--clean", "--if-exists", "--no-owner", f"--file={script}", str(source))
        once = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction")
        _postgresql("psql", *once, f"--file={drops}", f"--file={script}")


def _postgresql(program: str, *options: str) -> None:
    """Run a program of PostgreSQL's on this site's database; the password is in no command line."""
    told: dict[str, Any] = connection.settings_dict
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    given = {name: str(told[key]) for name, key in names.items() if told[key]}
    if mode := told["OPTIONS"].get("sslmode"):
        given["PGSSLMODE"] = mode
    _run(program, f"--dbname={told['NAME']}", *options, **given)


def _run(program: str, *options: str, **environment: str) -> None:
    try:
        done = subprocess.run(
            [_program(program), *options],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        package = "postgresql-client of the server's version"
        raise BackupError(f"{program} is not installed: install {package}") from None
    if done.returncode:
        raise BackupError(f"{program} failed:\n{done.stderr.strip()}")


def _program(name: str) -> str:
    """Return the newest of those that Debian installs side by side, or the one on PATH."""
    found = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest = max(found, key=lambda path: int(path.parent.parent.name), default=None)
    return str(newest or name)
