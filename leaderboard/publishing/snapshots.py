"""Says where snapshots lie, and what of them may be fetched."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from leaderboard.kit.json_types import JsonDict
from leaderboard.models import Snapshot

MANIFEST = "MANIFEST.json"
LICENCE = "Apache-2.0"
HOLDS = {
    "problems": "what kernels are written for, with the digest of each problem's file",
    "models": "who wrote them",
    "submissions": "what was handed in together, and its standing",
    "kernels": "each kernel by the digest of its source",
    "runs": "every finished evaluation: verdict, times, bounds",
    "reports": "the rest of each: trials, timed calls, timelines, clocks",
    "summaries": "what boards are computed from",
    "places": "every board, with its places",
    "training": "kernels that may be trained on, under the licence of each",
    "TRAINING": "the data card of these",
    "claims": "results that others published",
}
TYPES = {
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".gz": "application/gzip",
    ".parquet": "application/vnd.apache.parquet",
}


def root() -> Path:
    return Path(settings.STATE_DIR) / "snapshots"


def folder(tag: str) -> Path:
    return root() / tag


def file_called(snapshot: Snapshot, name: str) -> JsonDict | None:
    """Return what is recorded of a file: nothing else of the folder is ever served."""
    return next((file for file in snapshot.files if file["name"] == name), None)


def manifest_digest(snapshot: Snapshot) -> str:
    """Return the one SHA-256 that stands for all files, which the manifest lists; else empty."""
    found = file_called(snapshot, MANIFEST)
    return str(found["sha256"]) if found else ""
