"""Keeps a kernel of several files in one text, which is its identity as a source is.

`# pkb: files` begins such a text. Before each file a line says how many lines it has and its path.
The client has this module too, so it runs on Python 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

from .archive_names import is_kernel

MANIFEST = "pkb.toml"
PYTHON, OTHERS = ".py", (".cu", ".cuh", ".cpp", ".cc", ".c", ".h", ".hpp", ".toml")
MOST_FILES, MOST_BYTES, MOST_PATH_CHARS = 64, 1 << 20, 200
_FIRST = "# pkb: files"
_HEAD = re.compile(r"# pkb: (\d{1,7}) lines of (\S+)")
_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/){0,8}[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Part(NamedTuple):
    """Holds a file, and the line of the whole text on which it begins."""

    path: str
    text: str
    line: int


def is_path(path: str) -> bool:
    """Return True for a path that a file of a kernel may have."""
    known = PurePosixPath(path).suffix in (PYTHON, *OTHERS)
    return known and len(path) <= MOST_PATH_CHARS and _PATH.fullmatch(path) is not None


def kernel_folders(paths: Iterable[PurePath]) -> list[PurePath]:
    """Return the folders among the paths of an archive whose files are one kernel each: those of a
    `pkb.toml` with none above it."""
    found: list[PurePath] = []
    for folder in sorted({path.parent for path in paths if path.name == MANIFEST}):
        if not any(above in found for above in (folder, *folder.parents)):
            found.append(folder)
    return found


def folder_of(path: PurePath, folders: Collection[PurePath]) -> PurePath | None:
    """Return which of the folders a file is a part of; None where it is none, by its name."""
    folder = next((above for above in path.parents if above in folders), None)
    return folder if folder and is_path(path.relative_to(folder).as_posix()) else None


def is_wanted(path: PurePath, folders: Collection[PurePath]) -> bool:
    """Return True for a kernel, and for a file of one that has several."""
    if any(above in folders for above in path.parents):
        return folder_of(path, folders) is not None
    return is_kernel(path)


def joined(files: Mapping[str, str]) -> str:
    """Return the one text of these files, by their paths. A last line gets its end."""
    parts = [_FIRST]
    for path in sorted(files):
        lines = files[path].split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
        parts += [f"# pkb: {len(lines)} lines of {path}", *lines]
    return "\n".join([*parts, ""])


def read_kernel(path: Path) -> str:
    """Return the source of a file, or of the files in a folder. Raises OSError or ValueError."""
    if not path.is_dir():
        return path.read_text(encoding="utf-8")
    inside = ((one, one.relative_to(path).as_posix()) for one in path.rglob("*") if one.is_file())
    return joined({name: one.read_text(encoding="utf-8") for one, name in inside if is_path(name)})


def is_joined(data: bytes) -> bool:
    """Return True where bytes begin as the text of several files does."""
    return data.startswith(f"{_FIRST}\n".encode())


def parts_of(source: str) -> list[Part]:
    """Return the files of a text that `joined` made; none where it is a file itself."""
    if not source.startswith(f"{_FIRST}\n"):
        return []
    found: list[Part] = []
    lines, at = source.split("\n"), 1
    while at < len(lines) - 1:
        head = _HEAD.fullmatch(lines[at])
        is_next = head and is_path(head[2]) and (not found or head[2] > found[-1].path)
        if head is None or not is_next or len(found) == MOST_FILES:
            return []
        first, at = at + 1, at + 1 + int(head[1])
        found.append(Part(head[2], "".join(f"{line}\n" for line in lines[first:at]), first + 1))
    return found if at == len(lines) - 1 and lines[-1] == "" else []


def as_python(source: str) -> str:
    """Return a source as one Python text of as many lines, for whoever looks for words in it: what
    is not Python stands in strings, as it does in a kernel of one file."""
    return "".join(python_pieces(source))


def python_pieces(source: str) -> list[str]:
    """Return that text in one piece for each file, so that what a file leaves open, as a string,
    reaches no further."""
    parts = parts_of(source)
    return [f"{_FIRST}\n", *map(_piece, parts)] if parts else [source]


def _piece(part: Part) -> str:
    """Return the line of a file's head, empty or with what begins a string, and its lines."""
    if part.path.endswith(PYTHON) or not part.text:
        return f"\n{part.text}"
    text = part.text[:-1].replace("'''", '"""').rstrip("'\\")
    return f"_ = r'''\n{text}'''\n"
