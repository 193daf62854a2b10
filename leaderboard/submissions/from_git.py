"""Fills in sources that are not held here from a clone of the repository that has them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction

from leaderboard.kit.request_error import RequestError
from leaderboard.models import DataVersion, Source
from leaderboard.models.sources import packed_source
from leaderboard.submissions.sources import decoded

GIT_S = 30.0


@dataclass(kw_only=True)
class Filled:
    """Counts what was filled in, and names by path what was not, with the reason."""

    count: int = 0
    left_out: dict[str, str] = field(default_factory=dict)


def fill_from(clone: Path) -> Filled:
    """Store the texts that a clone has of sources not held so far, whose digests agree."""
    filled, rows = Filled(), []
    for source in Source.objects.filter(packed=None).order_by("repository", "path"):
        try:
            row = packed_source(decoded(_blob(clone, source)))
        except (ValueError, RequestError) as error:
            filled.left_out[source.path] = str(error)
            continue
        if row.pk == source.pk:
            rows.append(row)
        else:
            filled.left_out[source.path] = "the file there has another SHA-256"
    with transaction.atomic():
        filled.count = Source.objects.fill(rows)
        if filled.count:
            DataVersion.objects.bump()
    return filled


def _blob(clone: Path, source: Source) -> bytes:
    """Read a file of a commit; raise ValueError with what git says where it has none."""
    command = ["git", "-C", str(clone), "cat-file", "blob", f"{source.commit}:{source.path}"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=GIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"git cannot be asked: {error}") from None
    if done.returncode:
        raise ValueError(done.stderr.decode(errors="replace").strip() or "git has no such file")
    return done.stdout
