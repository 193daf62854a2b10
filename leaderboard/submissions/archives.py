"""Reads the files of an uploaded archive or a folder, trusting nothing that it says of itself.

Members are read one by one under limits, kernels into memory and transcripts into a spool; nothing
is ever written to disk by name.
"""

from __future__ import annotations

import gzip
import io
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Self

from evaluator.messages.archive_names import (
    MAX_TOTAL_BYTES,
    MAX_TRANSCRIPTS_BYTES,
    MAX_WHOLE_BYTES,
    path_inside,
)
from evaluator.messages.source_files import folder_of, is_wanted, kernel_folders
from leaderboard.kit.request_error import RequestError
from leaderboard.submissions.spool import Spool, Spooled, scratch_file

MAX_SOURCE_BYTES = 256 << 10
MAX_MEMBERS = 5000
MAX_TAR_BYTES = MAX_WHOLE_BYTES  # unpacked
MAX_UPLOAD_BYTES = MAX_WHOLE_BYTES  # in parts
MAX_HEADER_BYTES = 64 << 10
CHUNK_BYTES = 1 << 20
MAX_RATIO = 100
RATIO_FROM_BYTES = 1 << 20
# What next to kernels is read, for attempt_archives.py, and how many bytes at most.
MANIFEST, ATTEMPTS, TRANSCRIPTS = "manifest.json", "attempts.jsonl", "transcripts"
LIMITS = {MANIFEST: 64 << 10, ATTEMPTS: 4 << 20, TRANSCRIPTS: 1 << 20}
_TOLD = re.compile(r"(?:[^/]+/)?(?:(manifest\.json)|(attempts\.jsonl)|(transcripts)/.+\.gz)")
_FIX = "Make a zip or tar.gz of plain files named <number>_<slug>_<backend>.py."
_LIMIT = f"{MAX_SOURCE_BYTES >> 10} KiB"
_SHORTER = f"Remove what the kernel does not need: a file has at most {_LIMIT}."
_LESS = "Leave out what is not needed, or hand in less: docs/api.md says what an archive may hold."
_OF_HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OSError),
)


@dataclass(frozen=True, kw_only=True)
class Member:
    """Holds a file; of a transcript, where it waits on the disk; of a kernel of several files, the
    folder of those."""

    path: PurePosixPath
    content: bytes | Spooled
    folder: PurePath | None = None

    @property
    def data(self) -> bytes:
        """Return its bytes."""
        return self.content if isinstance(self.content, bytes) else self.content.read()

    @property
    def is_transcript(self) -> bool:
        """Return whether it is of those, which have a limit of their own together."""
        return told_limit(self.path) == LIMITS[TRANSCRIPTS]


@dataclass(kw_only=True)
class Unpacked:
    """Holds the files of an archive or a folder, by name why others are refused, and what ended
    the reading early."""

    members: list[Member] = field(default_factory=list)
    errors: dict[str, RequestError] = field(default_factory=dict)
    fault: RequestError | None = None

    def refuse(self, name: str, says: str, code: str = "bad_archive", fix: str = "") -> None:
        """Note why a file is refused, so that its sender can mend all files at once."""
        where = shown(name)
        self.errors.setdefault(where, _archive_error(f"{where} {says}.", code, fix or _FIX))


def read_archive(file: IO[bytes]) -> Unpacked:
    """Return the kernels of a zip or tar.gz, and what tells how they were made, with all that is
    wrong with the archive (400, or 413 where it is too large)."""
    mark = file.read(4)
    file.seek(0)
    found = Unpacked()
    if mark[:2] == b"\x1f\x8b":
        members = _tar_members(file, found)
    elif mark[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        members = _zip_members(file, found)
    else:
        return Unpacked(fault=_archive_error("The file is neither a zip nor a tar.gz."))
    try:
        _collect(members, found)
    except RequestError as error:
        found.fault = error
    except _BROKEN as error:
        found.fault = _archive_error(f"The archive is damaged: {shown(str(error))}.")
    return found


def read_folder(folder: Path) -> Unpacked:
    """Return the Python files below a folder of this machine, and what tells how they were made;
    links are refused.

    Paths begin with the folder's own name, which says as much as the names below it.
    """
    folder = folder.resolve()
    every = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    folders, found, top = kernel_folders(every), Unpacked(), PurePosixPath(folder.name)
    paths = [path for path in every if not _is_passed_over(path, folders)]
    links = [path for path in paths if (folder / path).is_symlink()]
    for path in links:
        found.refuse(str(folder / path), "is a link")
    members = (
        _member(top / path, (folder / path).open("rb"), [top / one for one in folders])
        for path in paths
        if path not in links
    )
    try:
        _collect(members, found)
    except RequestError as error:
        found.fault = error
    return found


def _member(path: PurePosixPath, file: IO[bytes], folders: Collection[PurePath]) -> Member:
    """Return a file with one byte more than its limit at most."""
    with file:
        content = file.read((told_limit(path) or MAX_SOURCE_BYTES) + 1)
    return Member(path=path, content=content, folder=folder_of(path, folders))


def told_limit(path: PurePath) -> int | None:
    """Return how many bytes a companion that is read may have; None for any other file."""
    found = _TOLD.fullmatch(path.as_posix())
    return LIMITS[str(found[found.lastindex])] if found and found.lastindex else None


def _collect(members: Iterator[Member], found: Unpacked) -> None:
    """Add the files to what was found. Raises RequestError for an archive that has too much, or no
    kernel."""
    kept: dict[PurePosixPath, Member] = {}
    spool, total, of_transcripts = Spool(), 0, 0
    for member in members:
        data = member.data
        if member.is_transcript:
            of_transcripts += len(data)
            _check_total(of_transcripts, MAX_TRANSCRIPTS_BYTES, "transcripts of ")
        else:
            total += len(data)
            _check_total(total, MAX_TOTAL_BYTES)
        if member.path in kept:
            found.refuse(str(member.path), "occurs twice", "duplicate_file")
            continue
        if len(data) > MAX_SOURCE_BYTES and not told_limit(member.path):
            found.refuse(str(member.path), f"is larger than {_LIMIT}", "too_large", _SHORTER)
            continue
        content = spool.keep(data) if member.is_transcript else data
        kept[member.path] = replace(member, content=content)
        found.members.append(kept[member.path])
    if all(map(told_limit, kept)) and not found.errors:
        raise _archive_error("It holds no kernel.", "empty_archive")


def _zip_members(file: IO[bytes], found: Unpacked) -> Iterator[Member]:
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        _check_count(len(entries))
        total, paths = 0, [_checked_path(entry.orig_filename, found) for entry in entries]
        folders = kernel_folders(filter(None, paths))
        for entry, path in zip(entries, paths, strict=True):
            if path is None or entry.is_dir() or _is_passed_over(path, folders):
                continue
            if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
                found.refuse(str(path), "is a link or a device", "not_a_file")
            elif entry.flag_bits & 0x1:
                found.refuse(str(path), "is encrypted", "encrypted")
            elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                found.refuse(str(path), "is packed in an unusual way")
            else:
                member = _member(path, archive.open(entry), folders)
                total += len(member.data)
                _check_ratio(total, size)
                yield member


def _tar_members(file: IO[bytes], found: Unpacked) -> Iterator[Member]:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    # Headers of a tar are as hostile as its members, so it is unpacked under a limit before any
    # of them is read.
    with gzip.GzipFile(fileobj=file) as packed, scratch_file() as plain:
        while chunk := packed.read(CHUNK_BYTES):
            plain.write(chunk)
            _check_total(plain.tell(), MAX_TAR_BYTES)
            _check_ratio(plain.tell(), size)
        plain.seek(0)
        with tarfile.open(fileobj=plain, mode="r:", tarinfo=_Entry) as archive:
            entries: list[tarfile.TarInfo] = []
            for entry in archive:
                entries.append(entry)
                _check_count(len(entries))
            paths = [_checked_path(entry.name, found) for entry in entries]
            folders = kernel_folders(filter(None, paths))
            for entry, path in zip(entries, paths, strict=True):
                if path is None or entry.isdir() or _is_passed_over(path, folders):
                    continue
                if not entry.isreg() or entry.issparse():
                    found.refuse(str(path), "is a link or a device", "not_a_file")
                    continue
                yield _member(path, archive.extractfile(entry) or io.BytesIO(), folders)


class _Entry(tarfile.TarInfo):
    """Refuses what is longer than any name where a header is of a header: it is read whole."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in _OF_HEADERS and not 0 <= entry.size <= MAX_HEADER_BYTES:
            limit = f"{MAX_HEADER_BYTES >> 10} KiB"
            raise _archive_error(f"A header of it is larger than {limit}.", "too_large")
        return entry


def _checked_path(name: str, found: Unpacked) -> PurePosixPath | None:
    path = path_inside(name)
    if path is None:
        found.refuse(name, "is not a path inside the archive", "bad_path")
    return path


def _is_passed_over(path: PurePath, folders: Collection[PurePath]) -> bool:
    """Return True for what nobody reads. Links and devices of such names do no harm either."""
    return not (is_wanted(path, folders) or told_limit(path))


def _check_count(count: int) -> None:
    if count > MAX_MEMBERS:
        raise _archive_error(f"It holds more than {MAX_MEMBERS} members.", "too_many_files", _LESS)


def _check_total(total: int, most: int, what: str = "") -> None:
    if total > most:
        raise _archive_error(f"It holds {what}more than {most >> 20} MiB.", "too_large", _LESS)


def _check_ratio(unpacked: int, packed: int) -> None:
    if unpacked > RATIO_FROM_BYTES and unpacked > MAX_RATIO * packed:
        says = f"It unpacks to more than {MAX_RATIO} times its size."
        raise _archive_error(says, "too_large", _LESS)


def shown(text: str) -> str:
    """Return somebody else's text, short and printable, for a message."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return clean if len(clean) <= 120 else f"{clean[:119]}…"


def _archive_error(message: str, code: str = "bad_archive", fix: str = _FIX) -> RequestError:
    status = 413 if code == "too_large" else 400
    return RequestError(code, message, fix, status=status, fields={"archive": message})
