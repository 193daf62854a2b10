"""Makes triggers that keep what the site promised to keep, on SQLite and on PostgreSQL."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# Which rows of which table may no longer be changed.
KEPT = {
    "run": "OLD.status IN ('done', 'failed', 'cancelled')",
    "kernel": "TRUE",
    "source": "OLD.packed IS NOT NULL",
    "auditentry": "TRUE",
}
# Of which table no row may be deleted.
NEVER_DELETED = ("auditentry",)
_FUNCTION = """
CREATE OR REPLACE FUNCTION leaderboard_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'append-only: %', TG_TABLE_NAME USING ERRCODE = '23000';
END $$
"""
_POSTGRESQL = """
CREATE OR REPLACE TRIGGER {name}_append_only BEFORE UPDATE ON leaderboard_{name}
FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION leaderboard_append_only()
"""
_SQLITE = """
CREATE TRIGGER IF NOT EXISTS {name}_append_only BEFORE UPDATE ON leaderboard_{name}
FOR EACH ROW WHEN {condition} BEGIN SELECT RAISE(ABORT, 'append-only: leaderboard_{name}'); END
"""

_POSTGRESQL_DELETE = """
CREATE OR REPLACE TRIGGER {name}_never_deleted BEFORE DELETE ON leaderboard_{name}
FOR EACH ROW EXECUTE FUNCTION leaderboard_append_only()
"""
_SQLITE_DELETE = """
CREATE TRIGGER IF NOT EXISTS {name}_never_deleted BEFORE DELETE ON leaderboard_{name}
FOR EACH ROW BEGIN SELECT RAISE(ABORT, 'append-only: leaderboard_{name}'); END
"""


def refuse_deletion(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Refuse to delete rows; whole tables are emptied by TRUNCATE, which takes an owner's right."""
    is_postgresql = editor.connection.vendor == "postgresql"
    for name in NEVER_DELETED:
        statement = _POSTGRESQL_DELETE if is_postgresql else _SQLITE_DELETE
        editor.execute(statement.format(name=name), params=None)


def allow_deletion(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    is_postgresql = editor.connection.vendor == "postgresql"
    for name in NEVER_DELETED:
        table = f" ON leaderboard_{name}" if is_postgresql else ""
        editor.execute(f"DROP TRIGGER IF EXISTS {name}_never_deleted{table}", params=None)


def create(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    is_postgresql = editor.connection.vendor == "postgresql"
    if is_postgresql:
        editor.execute(_FUNCTION, params=None)
    statement = _POSTGRESQL if is_postgresql else _SQLITE
    for name, condition in KEPT.items():
        editor.execute(statement.format(name=name, condition=condition), params=None)


def drop(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Allow changes again; the function stays, as what refuses deletion calls it, too."""
    is_postgresql = editor.connection.vendor == "postgresql"
    for name in KEPT:
        table = f" ON leaderboard_{name}" if is_postgresql else ""
        editor.execute(f"DROP TRIGGER IF EXISTS {name}_append_only{table}", params=None)
