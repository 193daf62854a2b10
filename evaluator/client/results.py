"""Reads a snapshot of a board as pandas frames: from a site, or from a folder."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .credentials import normal, site_called
from .failures import Misused, NoAnswer
from .transport import SiteAddress, segment

MANIFEST, ENDING = "MANIFEST.json", ".parquet"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z][a-z_]{0,40}")


class Results(Mapping[str, Any]):
    """Maps the tables of one snapshot, `runs` or `problems`, to pandas frames, read when asked for.

    `manifest` says what it is made of: cite its `tag` and `manifest_sha256`. Every file is checked
    against its SHA-256.
    """

    def __init__(self, place: Path | SiteAddress, tag: str) -> None:
        self._place, self._tag = place, tag
        data = self._bytes(MANIFEST)
        self.manifest_sha256 = hashlib.sha256(data).hexdigest()
        self.manifest: Mapping[str, Any] = json.loads(data)
        listed = {str(each["name"]): str(each["sha256"]) for each in self.manifest["files"]}
        self._digests = {
            name[: -len(ENDING)]: digest
            for name, digest in listed.items()
            if name.endswith(ENDING) and _NAME.fullmatch(name[: -len(ENDING)])
        }
        if not all(map(_DIGEST.fullmatch, self._digests.values())):
            raise NoAnswer("the manifest holds something that is no SHA-256", is_passing=False)
        self._frames: dict[str, Any] = {}

    @property
    def tag(self) -> str:
        """Return the snapshot's name."""
        return str(self.manifest.get("tag", self._tag))

    def __getitem__(self, name: str) -> Any:
        """Return a table as a frame. Raises KeyError for one that there is not, Misused without
        pandas and pyarrow."""
        if name not in self._digests:
            raise KeyError(f"there is no table {name}: there are {', '.join(sorted(self))}")
        if name not in self._frames:
            self._frames[name] = _frame(self._checked(name))
        return self._frames[name]

    def __getattr__(self, name: str) -> Any:
        """Return the same: `results.runs` is `results["runs"]`."""
        if name.startswith("_") or name not in self._digests:
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._digests)

    def __len__(self) -> int:
        return len(self._digests)

    def _checked(self, name: str) -> bytes:
        """Return a table's bytes, from the cache if they are there. Raises NoAnswer where they are
        others than the manifest says."""
        digest = self._digests[name]
        kept = _cache() / digest
        if isinstance(self._place, SiteAddress) and kept.is_file():
            data = kept.read_bytes()
            if hashlib.sha256(data).hexdigest() == digest:
                return data
        data = self._bytes(f"{name}{ENDING}")
        if hashlib.sha256(data).hexdigest() != digest:
            said = f"{name}{ENDING} has other bytes than its snapshot says"
            raise NoAnswer(said, is_passing=False)
        if isinstance(self._place, SiteAddress):
            kept.parent.mkdir(parents=True, exist_ok=True)
            partial = kept.with_suffix(f".{os.getpid()}")
            partial.write_bytes(data)
            partial.replace(kept)
        return data

    def _bytes(self, name: str) -> bytes:
        if isinstance(self._place, SiteAddress):
            return self._place.get(f"/snapshots/{segment(self._tag)}/{segment(name)}").body
        try:
            return (self._place / name).read_bytes()
        except OSError as error:
            raise Misused(f"{self._place} is no snapshot: {error}") from None


def results(place: str | Path | None = None, snapshot: str | None = None) -> Results:
    """Return the results of a site's newest snapshot, or of the one that is named; or of a folder
    that holds one. Without a place the site of `pkb login` or PKB_SITE is asked.

    Raises Misused where there is none.
    """
    if isinstance(place, Path) or (place and "://" not in place and Path(place).is_dir()):
        return Results(Path(str(place)), Path(str(place)).name)
    site = site_called(None) if place is None else SiteAddress(normal(str(place)))
    if snapshot is None:
        listed = site.get("/snapshots.json").json()["snapshots"]
        if not listed:
            raise Misused(f"{site.url} has no snapshot yet.", "Its staff make them: make_snapshot.")
        snapshot = str(max(listed, key=lambda each: str(each["created_at"]))["tag"])
    return Results(site, snapshot)


def _frame(data: bytes) -> Any:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        raise Misused("Frames need pandas and pyarrow.", "pip install pandas pyarrow") from None
    return pandas.read_parquet(io.BytesIO(data))


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pkb"
