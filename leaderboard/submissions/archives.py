"""Reads the files of an uploaded archive or a folder, trusting nothing that it says of itself.

Members are read one by one into memory under limits; nothing is ever written to disk by name.
"""

from __future__ import annotations

import gzip
import io
import itertools
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from leaderboard.kit.request_error import RequestError

MAX_SOURCE_BYTES = 256 << 10
MAX_MEMBERS = 5000
MAX_TOTAL_BYTES = 32 << 20
MAX_RATIO = 100
RATIO_FROM_BYTES = 1 << 20
# What lies beside kernels: prompts, transcripts, tables and notes of whoever made them.
COMPANIONS = (
    *(".json", ".jsonl", ".gz", ".md", ".txt", ".log"),
    *(".csv", ".toml", ".yaml", ".yml", ".html"),
)
# What of them is read, for attempt_archives.py, and how many bytes at most.
MANIFEST, ATTEMPTS, TRANSCRIPTS = "manifest.json", "attempts.jsonl", "transcripts"
LIMITS = {MANIFEST: 64 << 10, ATTEMPTS: 4 << 20, TRANSCRIPTS: 1 << 20}
_TOLD = re.compile(r"(?:[^/]+/)?(?:(manifest\.json)|(attempts\.jsonl)|(transcripts)/.+\.gz)")
_FIX = "Make a zip or tar.gz of plain files named <number>_<slug>_<backend>.py."
_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OSError),
)


@dataclass(frozen=True, kw_only=True)
class Member:
    path: PurePosixPath
    data: bytes


def read_archive(file: IO[bytes]) -> list[Member]:
    """Return the files of a zip or tar.gz, without hidden ones and those companions of kernels that
    nobody reads. Raises RequestError (400, or 413 where it is too large)."""
    mark = file.read(4)
    file.seek(0)
    if mark[:2] == b"\x1f\x8b":
        members = _tar_members(file)
    elif mark[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        members = _zip_members(file)
    else:
        raise _archive_error("The file is neither a zip nor a tar.gz.")
    try:
        return _collected(members)
    except _BROKEN as error:
        raise _archive_error(f"The archive is damaged: {shown(str(error))}.") from None


def read_folder(folder: Path) -> list[Member]:
    """Return the Python files below a folder of this machine, and what tells how they were made;
    links are not followed. Raises RequestError.

    Paths begin with the folder's own name, which says as much as the names below it.
    """
    folder = folder.resolve()
    told = (MANIFEST, ATTEMPTS, f"{TRANSCRIPTS}/**/*.gz")
    found = itertools.chain(folder.rglob("*.py"), *map(folder.glob, told))
    paths = sorted(path for path in found if path.is_file())
    links = [path for path in paths if path.is_symlink()]
    if links:
        raise _archive_error(f"{shown(str(links[0]))} is a link.")
    return _collected(
        _member(PurePosixPath(path.relative_to(folder.parent).as_posix()), file)
        for path in paths
        for file in [path.open("rb")]
    )


def _member(path: PurePosixPath, file: IO[bytes]) -> Member:
    """Return a file with one byte more than its limit at most."""
    with file:
        return Member(path=path, data=file.read((told_limit(path) or MAX_SOURCE_BYTES) + 1))


def told_limit(path: PurePosixPath) -> int | None:
    """Return how many bytes a companion that is read may have; None for any other file."""
    found = _TOLD.fullmatch(str(path))
    return LIMITS[str(found[found.lastindex])] if found and found.lastindex else None


def _collected(members: Iterator[Member]) -> list[Member]:
    found: dict[PurePosixPath, Member] = {}
    total = 0
    for member in members:
        total += len(member.data)
        if len(member.data) > MAX_SOURCE_BYTES and not told_limit(member.path):
            limit = f"{MAX_SOURCE_BYTES >> 10} KiB"
            raise _archive_error(f"{shown(str(member.path))} is larger than {limit}.", "too_large")
        if total > MAX_TOTAL_BYTES:
            raise _archive_error(f"It holds more than {MAX_TOTAL_BYTES >> 20} MiB.", "too_large")
        if member.path in found:
            raise _archive_error(f"{shown(str(member.path))} occurs twice.", "duplicate_file")
        found[member.path] = member
    if all(map(told_limit, found)):
        raise _archive_error("It holds no kernel.", "empty_archive")
    return list(found.values())


def _zip_members(file: IO[bytes]) -> Iterator[Member]:
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        _check_count(len(entries))
        total = 0
        for entry in entries:
            path = _checked_path(entry.orig_filename)
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _archive_error(f"{shown(str(path))} is a link or a device.", "not_a_file")
            if entry.flag_bits & 0x1:
                raise _archive_error(f"{shown(str(path))} is encrypted.", "encrypted")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _archive_error(f"{shown(str(path))} is packed in an unusual way.")
            if entry.is_dir() or _is_passed_over(path):
                continue
            member = _member(path, archive.open(entry))
            total += len(member.data)
            _check_ratio(total, size)
            yield member


def _tar_members(file: IO[bytes]) -> Iterator[Member]:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    # Headers of a tar are as hostile as its members, so it is unpacked under a limit before any
    # of them is read.
    with gzip.GzipFile(fileobj=file) as packed:
        data = packed.read(MAX_TOTAL_BYTES + 1)
    if len(data) > MAX_TOTAL_BYTES:
        raise _archive_error(f"It holds more than {MAX_TOTAL_BYTES >> 20} MiB.", "too_large")
    _check_ratio(len(data), size)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for count, entry in enumerate(archive, start=1):
            _check_count(count)
            path = _checked_path(entry.name)
            if entry.isdir() or (entry.isreg() and _is_passed_over(path)):
                continue
            if not entry.isreg() or entry.issparse():
                raise _archive_error(f"{shown(str(path))} is a link or a device.", "not_a_file")
            yield _member(path, archive.extractfile(entry) or io.BytesIO())


def _checked_path(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    unsafe = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name
    if unsafe or not name.isprintable() or not path.parts or len(name) > 512:
        raise _archive_error(f"{shown(name)} is not a path inside the archive.", "bad_path")
    return path


def _is_passed_over(path: PurePosixPath) -> bool:
    """Recognise companions that nobody reads, and what desktop systems add without being asked:
    .DS_Store."""
    is_hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    return is_hidden or (path.suffix.lower() in COMPANIONS and not told_limit(path))


def _check_count(count: int) -> None:
    if count > MAX_MEMBERS:
        raise _archive_error(f"It holds more than {MAX_MEMBERS} members.", "too_many_files")


def _check_ratio(unpacked: int, packed: int) -> None:
    if unpacked > RATIO_FROM_BYTES and unpacked > MAX_RATIO * packed:
        raise _archive_error(f"It unpacks to more than {MAX_RATIO} times its size.", "too_large")


def shown(text: str) -> str:
    """Return somebody else's text, short and printable, for a message."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return clean if len(clean) <= 120 else f"{clean[:119]}…"


def _archive_error(message: str, code: str = "bad_archive") -> RequestError:
    return RequestError(code, message, _FIX, status=413 if code == "too_large" else 400)
