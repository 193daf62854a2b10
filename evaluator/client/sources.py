"""Reads kernels from files, folders and archives, by the names that the site reads too."""

from __future__ import annotations

import io
import json
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ..messages.archive_names import (
    MAX_TOTAL_BYTES,
    MAX_TRANSCRIPTS_BYTES,
    MAX_WHOLE_BYTES,
    is_kernel,
    path_inside,
)
from ..messages.source_files import folder_of, is_wanted, joined, kernel_folders
from .catalogue import BACKENDS
from .failures import Misused

MAX_SOURCE_BYTES = 256 << 10
MAX_FILES = 5000
MAX_ARCHIVE_BYTES = 64 << 20  # of one request; more is sent in parts
MAX_UPLOAD_BYTES = MAX_WHOLE_BYTES
MANIFEST, MAX_MANIFEST_BYTES = "manifest.json", 64 << 10
_BACKEND = "|".join([*BACKENDS, "pk"])
_FILE = re.compile(
    rf"(?:(?P<number>\d{{1,4}})_)?(?P<slug>[a-z]\w*?)(?:_(?P<backend>{_BACKEND}))?\.py", re.ASCII
)
_STEP = re.compile(rf"step_(?P<step>\d{{1,5}})_(?P<backend>{_BACKEND})\.py", re.ASCII)
_PROBLEM = re.compile(r"(?P<number>\d{1,4})_(?P<slug>[a-z]\w*)", re.ASCII)
_TREE = re.compile(rf"solutions_(?P<backend>{_BACKEND})(?:_.+)?", re.ASCII)
# What `pkb-attempts/1` has beside kernels.
TRANSCRIPTS = "transcripts"
_OF_ATTEMPTS = ("attempts.jsonl", TRANSCRIPTS, "prompts")

NO_FILE, PUT_FILE = "is a link or a device.", "Put the file itself there."
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, OSError, EOFError, RuntimeError)


class Named(NamedTuple):
    """Holds what a path says of a kernel. `is_of_tree` where a folder of PKB's generator lies
    around it, in which older numbers and names are understood."""

    number: str | None
    slug: str
    backend: str | None
    is_of_tree: bool = False

    @property
    def problem(self) -> str:
        """Return number and name as the file has them."""
        return self.slug if self.number is None else f"{self.number}_{self.slug}"


class Member(NamedTuple):
    """Holds a file: its path below what was named, and its bytes."""

    path: PurePosixPath
    data: bytes


def named(path: PurePosixPath) -> Named | None:
    """Return what a path says of a kernel; None where it is called as no kernel is."""
    tree, step = _around(path, _TREE), _STEP.fullmatch(path.name)
    name = _around(path, _PROBLEM) if step else _FILE.fullmatch(path.name)
    if name is None:
        return None
    backend = (step or name)["backend"] or (tree["backend"] if tree else None)
    number = str(int(name["number"])) if name["number"] else None
    return Named(number, name["slug"], backend_called(backend), tree is not None)


def backend_called(name: str | None) -> str | None:
    """Return the backend of a published name: `pk` is parallelkittens."""
    return "parallelkittens" if name == "pk" else name


def _around(path: PurePosixPath, name: re.Pattern[str]) -> re.Match[str] | None:
    """Return the innermost folder around a file that is called so."""
    found = [match for part in path.parts[:-1] if (match := name.fullmatch(part))]
    return found[-1] if found else None


def manifest_of(archive: bytes) -> dict[str, Any]:
    """Return the manifest of an archive of attempts; empty if it has none that can be read: the
    site says what is wrong with it."""
    packed = io.BytesIO(archive)
    try:
        found = (_zip_manifest if zipfile.is_zipfile(packed) else _tar_manifest)(packed)
    except (*_BROKEN, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _zip_manifest(packed: io.BytesIO) -> Any:
    with zipfile.ZipFile(packed) as archive:
        for entry in archive.infolist():
            if _is_manifest(entry.filename) and entry.file_size <= MAX_MANIFEST_BYTES:
                with archive.open(entry) as file:
                    return json.loads(file.read(MAX_MANIFEST_BYTES))
    return {}


def _tar_manifest(packed: io.BytesIO) -> Any:
    packed.seek(0)
    with tarfile.open(fileobj=packed, mode="r:gz") as archive:
        for entry in archive:
            is_one = entry.isreg() and entry.size <= MAX_MANIFEST_BYTES
            if is_one and _is_manifest(entry.name) and (file := archive.extractfile(entry)):
                return json.loads(file.read(MAX_MANIFEST_BYTES))
    return {}


def _is_manifest(name: str) -> bool:
    """Return True at the root, or in the one folder that lies there."""
    path = path_inside(name)
    return path is not None and path.name == MANIFEST and len(path.parts) <= 2


def is_archive(path: Path) -> bool:
    """Return True for a file that is sent as it is: a zip or a tar.gz. Raises Misused for another
    archive."""
    name = path.name.lower()
    if name.endswith((".tar", ".tar.xz", ".tar.bz2", ".tar.zst", ".7z", ".rar")):
        raise Misused(f"{path} is neither a zip nor a tar.gz.", "Pack it as one of these.")
    return name.endswith((".zip", ".tar.gz", ".tgz"))


def members(path: Path) -> list[Member]:
    """Return the kernels of a file, a folder or an archive. Raises Misused.

    A kernel of several files is one text, whose path is that of its folder and `.py`.
    """
    if path.is_dir():
        found = folder_members(path)
    elif is_archive(path):
        found = list(_archive_members(path))
    else:
        found = [Member(PurePosixPath(path.name), read(path))]
    folders = kernel_folders(member.path for member in found)
    whole = [_whole(PurePosixPath(folder), found) for folder in folders]
    alone = [one for one in found if not any(above in folders for above in one.path.parents)]
    return [*(one for one in alone if is_kernel(one.path)), *whole]


def _whole(folder: PurePosixPath, found: list[Member]) -> Member:
    own = [member for member in found if folder_of(member.path, [folder])]
    files = {
        one.path.relative_to(folder).as_posix(): one.data.decode(errors="replace") for one in own
    }
    return Member(folder.with_name(f"{folder.name}.py"), joined(files).encode())


def read(path: Path, most: int = MAX_TOTAL_BYTES) -> bytes:
    """Return a file's bytes. Raises Misused where it is larger than `most`, or OSError."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise Misused(f"{path} is larger than {most >> 10} KiB.")
    return data


def folder_members(folder: Path) -> list[Member]:
    """Return the kernels below a folder, and of a folder of attempts all that belongs to its
    format. Paths begin with the folder's own name, which may say the model.

    Nothing else is read: logs beside kernels may hold keys. Raises Misused.
    """
    folder = folder.resolve()
    manifest = folder / MANIFEST
    is_attempts = manifest.is_file() and b'"pkb-attempts/' in read(manifest)
    found, room = [], {True: MAX_TRANSCRIPTS_BYTES, False: MAX_TOTAL_BYTES}
    paths = sorted(folder.rglob("*"))
    folders = kernel_folders(path.relative_to(folder) for path in paths)
    for path in paths:
        below = path.relative_to(folder)
        belongs = is_wanted(below, folders) or (is_attempts and _is_of_attempts(below))
        if not belongs or not path.is_file() or any(part[0] == "." for part in below.parts):
            continue
        if path.is_symlink():
            raise Misused(f"{path} is a link.", "Put the file itself there.")
        found.append(Member(PurePosixPath(path.relative_to(folder.parent).as_posix()), read(path)))
        room[below.parts[0] == TRANSCRIPTS] -= len(found[-1].data)
        if min(room.values()) < 0 or len(found) > MAX_FILES:
            most = f"{MAX_FILES} files, {MAX_TOTAL_BYTES >> 20} MiB of kernels and"
            most = f"{most} {MAX_TRANSCRIPTS_BYTES >> 20} MiB of transcripts"
            raise Misused(f"{folder} has more than {most}.", "Hand it in in parts.")
    if not found:
        raise Misused(f"{folder} has no kernel.", "Kernels are called 1_allreduce_cuda.py.")
    return found


def _is_of_attempts(below: Path) -> bool:
    return below.parts[0] in _OF_ATTEMPTS or below == Path(MANIFEST)


def _archive_members(path: Path) -> Iterator[Member]:
    packed = io.BytesIO(read(path, MAX_UPLOAD_BYTES))
    try:
        if path.suffix.lower() == ".zip":
            yield from _of_zip(packed)
        else:
            yield from _of_tar(packed)
    except _BROKEN as error:
        raise Misused(f"{path} is damaged: {error}.") from None


def _of_zip(packed: io.BytesIO) -> Iterator[Member]:
    with zipfile.ZipFile(packed) as archive:
        entries = [(entry, _inside(entry.orig_filename)) for entry in archive.infolist()]
        folders = kernel_folders(path for _, path in entries)
        for entry, path in entries:
            if not is_wanted(path, folders) or entry.is_dir():
                continue
            if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
                raise Misused(f"{path} {NO_FILE}", PUT_FILE)
            with archive.open(entry) as file:
                yield Member(path, file.read(MAX_SOURCE_BYTES + 1))


def _of_tar(packed: io.BytesIO) -> Iterator[Member]:
    with tarfile.open(fileobj=packed, mode="r:gz") as archive:
        members = [(entry, _inside(entry.name)) for entry in archive]
        folders = kernel_folders(path for _, path in members)
        for entry, path in members:
            if not is_wanted(path, folders) or entry.isdir():
                continue
            file = archive.extractfile(entry) if entry.isreg() else None
            if file is None:
                raise Misused(f"{path} {NO_FILE}", PUT_FILE)
            yield Member(path, file.read(MAX_SOURCE_BYTES + 1))


def _inside(name: str) -> PurePosixPath:
    path = path_inside(name)
    if path is None:
        raise Misused(f"{name!r} is not a path inside the archive.")
    return path
