"""Writes a snapshot: the public board as it stands, in files that are the same bytes each time.

Only `make_snapshot` loads this module: it needs pyarrow, and a web worker does not.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count, islice
from pathlib import Path

import pyarrow as pa
from django.db import transaction
from pyarrow import parquet

from leaderboard.delivery.pages import code_version
from leaderboard.kit.one_moment import at_one_moment
from leaderboard.models import DataVersion, Snapshot
from leaderboard.models.choices import CURRENT_JUDGE
from leaderboard.publishing import snapshot_tables, snapshots, training_set
from leaderboard.publishing.snapshot_tables import CHUNK, SnapshotTable, TableRow

TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
TYPES = {
    "text": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "flag": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
    "texts": pa.list_(pa.string()),
    "ints": pa.list_(pa.int64()),
    "json": pa.string(),
}


class SnapshotError(Exception):
    """Says why a snapshot cannot be made."""


@dataclass(frozen=True, kw_only=True)
class WrittenFile:
    name: str
    bytes: int
    sha256: str
    rows: int | None = None


def make(tag: str) -> Snapshot:
    """Write a new snapshot, all of it or nothing. Raises SnapshotError."""
    if not TAG.fullmatch(tag):
        raise SnapshotError("A tag is up to 64 of A-Z, a-z, 0-9, - and _, such as 2026-11.")
    folder = snapshots.folder(tag)
    if _is_given(tag):
        raise SnapshotError(f"There is a snapshot {tag} already; it stays as it is.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    try:
        with at_one_moment():
            made = _written(tag, partial)
        with transaction.atomic():
            made.save(force_insert=True)
            partial.chmod(0o755)
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return made


def free_tag(wanted: str) -> str:
    """Return this tag, or with a number behind it where it was given before."""
    numbered = (f"{wanted}-{number}" for number in count(2))
    return next(tag for tag in chain([wanted], numbered) if not _is_given(tag))


def _is_given(tag: str) -> bool:
    return snapshots.folder(tag).exists() or Snapshot.objects.filter(pk=tag).exists()


def _written(tag: str, folder: Path) -> Snapshot:
    """Write all files without any time of writing: the same data make the same bytes."""
    version = DataVersion.objects.current()
    tables = [file for table in snapshot_tables.TABLES for file in _table(folder, table)]
    card = folder / training_set.CARD
    card.write_text(training_set.card(version))
    tables.append(_described(card))
    manifest = {
        "tag": tag,
        "data_version": version,
        "judge_version": CURRENT_JUDGE,
        "code_version": code_version(),
        "licence": snapshots.LICENCE,
        "files": [vars(file) for file in tables],
    }
    path = folder / snapshots.MANIFEST
    path.write_text(json.dumps(manifest, indent=1) + "\n")
    files = [*tables, _described(path)]
    return Snapshot(
        tag=tag,
        data_version=version,
        judge_version=CURRENT_JUDGE,
        files=[vars(file) for file in files],
    )


def _table(folder: Path, table: SnapshotTable) -> list[WrittenFile]:
    lines, columns = folder / f"{table.name}.jsonl.gz", folder / f"{table.name}.parquet"
    schema = pa.schema([(name, TYPES[kind]) for name, kind in table.kinds.items()])
    written = 0
    with (
        lines.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        parquet.ParquetWriter(columns, schema, compression="zstd") as writer,
    ):
        for chunk in _chunks(table.rows()):
            rows = [_plain(table, row) for row in chunk]
            packed.writelines(f"{json.dumps(row)}\n".encode() for row in rows)
            writer.write_table(pa.Table.from_pylist([_flat(table, r) for r in rows], schema))
            written += len(rows)
    return [_described(path, rows=written) for path in (lines, columns)]


def _chunks(rows: Iterable[TableRow]) -> Iterator[list[TableRow]]:
    left = iter(rows)
    while chunk := list(islice(left, CHUNK)):
        yield chunk


def _plain(table: SnapshotTable, row: TableRow) -> dict[str, object]:
    """Return a row as JSON has it: text for times and identifiers, None for what is no number."""
    pairs = zip(table.kinds.items(), row, strict=True)
    return {name: _value(kind, value) for (name, kind), value in pairs}


def _value(kind: str, value: object) -> object:
    if value is None:
        return None
    if kind == "text":
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return _finite(value)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value


def _flat(table: SnapshotTable, row: dict[str, object]) -> dict[str, object]:
    """Return a row as Parquet has it: times as such, nested values as JSON text."""
    made = {}
    for name, kind in table.kinds.items():
        value = row[name]
        if value is not None and kind == "time":
            value = datetime.fromisoformat(str(value))
        made[name] = json.dumps(value) if value is not None and kind == "json" else value
    return made


def _described(path: Path, rows: int | None = None) -> WrittenFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return WrittenFile(name=path.name, bytes=path.stat().st_size, sha256=digest, rows=rows)
