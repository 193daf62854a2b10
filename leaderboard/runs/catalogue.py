"""Brings the catalogue's rows in step with fixtures/problems.json."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from django.conf import settings
from django.db import transaction

from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.models import DataVersion, Problem
from leaderboard.models.catalogue import WITHDRAWN
from leaderboard.read_model import summary
from leaderboard.runs.hosts import register

EXPORT = Path(settings.BASE_DIR) / "fixtures" / "problems.json"
AUDIT = "problem-health.json"
COLUMNS = (
    *("slug", "category", "category_title", "title", "summary"),
    *("digest", "scored", "unscored_reason", "ranked_from", "ranked_from_reason"),
)


class CatalogueError(Exception):
    """Says why the catalogue cannot be read."""


def read_file(path: Path) -> list[JsonDict]:
    """Return the problems of an exported catalogue, each with what the audit beside it found; raise
    CatalogueError."""
    beside = path.with_name(AUDIT)
    try:
        text = path.read_text()
        found = json.loads(beside.read_text()) if beside.exists() else {}
    except (OSError, ValueError) as error:
        raise CatalogueError(f"{path} or {AUDIT} cannot be read: {error}") from None
    entries = _entries(text, str(path))
    return [{**entry, "health": _told(found.get(entry["slug"], {}))} for entry in entries]


def _told(found: JsonObject) -> JsonDict:
    """Copy an audit's findings about a problem, without the digest of the screened code."""
    return {
        profile: {name: value for name, value in part.items() if name != "behaviour"}
        for profile, part in found.items()
    }


def read_code() -> list[JsonDict]:
    """Export the problem files anew and return that catalogue; raise CatalogueError.

    A process of its own does it, because problem files load torch.
    """
    command = [sys.executable, "-m", "problems", "export"]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CatalogueError(f"`python -m problems export` failed:\n{done.stderr[-2000:]}")
    return read_file(EXPORT)


def _entries(text: str, name: str) -> list[JsonDict]:
    try:
        data = json.loads(text)
        version, entries = data["version"], data["problems"]
    except (ValueError, KeyError, TypeError) as error:
        raise CatalogueError(f"{name} is not a catalogue: {error!r}") from None
    if version != 1:
        raise CatalogueError(f"{name} has version {version}; this site reads version 1")
    for entry in entries:
        missing = sorted({"number", *COLUMNS} - set(entry))
        if missing:
            raise CatalogueError(f"{name}: problem {entry.get('number')} lacks {missing}")
    return list(entries)


def sync(entries: list[JsonDict]) -> list[int]:
    """Store the entries; return the numbers of those that are new or changed.

    A problem that is no longer listed stays, unscored: its results are kept. Where a digest
    changed, results of the old one no longer count, so the summary is rebuilt. If a process dies
    before that, the next call rebuilds it.
    """
    with transaction.atomic():
        register("cpu", "CPU")
        known = {problem.number: problem for problem in Problem.objects.all()}
        changed = [entry for entry in entries if _differs(known.get(entry["number"]), entry)]
        gone = set(known) - {entry["number"] for entry in entries}
        left = [known[number] for number in sorted(gone) if known[number].scored]
        for entry in changed:
            values = {name: entry[name] for name in COLUMNS}
            Problem.objects.update_or_create(
                number=entry["number"], defaults={**values, "payload": entry}
            )
        Problem.objects.filter(pk__in=gone).update(scored=False, unscored_reason=WITHDRAWN)
        if changed or left:
            DataVersion.objects.outdate_summary()
    summary.rebuild_if_outdated()
    return [entry["number"] for entry in changed] + [problem.number for problem in left]


def _differs(problem: Problem | None, entry: JsonObject) -> bool:
    return problem is None or problem.payload != entry or problem.scored != entry["scored"]
