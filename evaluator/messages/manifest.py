"""Reads `pkb.toml`, which says of a kernel of several files where it begins and what it needs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .job import Backend
from .source_files import MANIFEST, Part

MOST_LISTED = 32
ENTRY = "kernel:solution"  # where the manifest names none
TAKES = {
    "entry": re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,8}:[A-Za-z_]\w*", re.ASCII),
    "problem": re.compile(r"\w{1,100}", re.ASCII),
    "backend": re.compile("|".join(Backend)),
    "licence": re.compile(r"[\w.+() -]{1,100}", re.ASCII),
}
_LIKE = {
    "entry": f"module:function, such as {ENTRY}",
    "problem": "the number or the slug of a problem",
    "backend": f"one of {', '.join(Backend)}",
    "licence": "an SPDX expression, such as Apache-2.0",
}
_PACKAGE = re.compile(r"[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){0,3}", re.ASCII)
# Options of nvcc that change code, and neither files nor what is run.
_OPTION = re.compile(
    r"-O[0-3]|-lineinfo|--?use_fast_math|-std=c\+\+(?:17|20)|--?maxrregcount=\d{2,3}"
    r"|--expt-(?:relaxed-constexpr|extended-lambda)|-D\w{1,60}(?:=\w{1,60})?",
    re.ASCII,
)
_OPTIONS = (
    "-O0 to -O3, -lineinfo, --use_fast_math, -std=c++17 or 20, --maxrregcount=N, -DNAME=VALUE, "
    "--expt-relaxed-constexpr and --expt-extended-lambda are known"
)
_LISTS = {
    "nvcc_options": (_OPTION, _OPTIONS),
    "dependencies": (_PACKAGE, "name what is imported, such as flashinfer"),
}


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Holds what `pkb.toml` says, as text; `entry` is a module and a function of it. What is empty
    is not told."""

    entry: str = ENTRY
    problem: str = ""
    backend: str = ""
    licence: str = ""
    nvcc_options: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


class BadManifestError(Exception):
    """Names every fault of a manifest."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(f"{MANIFEST}: " + "; ".join(faults))
        self.faults = tuple(faults)


def manifest_of(parts: Sequence[Part]) -> Manifest:
    """Read the manifest among the files of a kernel. Raises BadManifestError."""
    texts = {part.path: part.text for part in parts}
    try:
        told = tomllib.loads(texts.get(MANIFEST, ""))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadManifestError([str(error)[:200]]) from None
    known = sorted(field.name for field in fields(Manifest))
    unknown = told.keys() - set(known)
    faults = [f"{name[:40]!r} is no key: {', '.join(known)}" for name in unknown]
    given = {"entry": ENTRY, **told}
    faults += [says for name, value in given.items() for says in _faults(name, value, texts)]
    if faults:
        raise BadManifestError(sorted(faults))
    return Manifest(**{name: _frozen(value) for name, value in told.items()})


def _frozen(value: str | list[str]) -> Any:
    return value if isinstance(value, str) else tuple(value)


def _faults(name: str, value: object, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the value of a key."""
    if name in _LISTS:
        yield from _list_faults(name, value)
    elif name in TAKES and not (isinstance(value, str) and TAKES[name].fullmatch(value)):
        yield f"{name} has to be {_LIKE[name]}, not {str(value)[:80]!r}"
    elif name == "entry" and entry_path(str(value), texts) is None:
        yield f"entry names a module that is no file: {str(value).partition(':')[0]}"


def _list_faults(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, list) or len(value) > MOST_LISTED:
        yield f"{name} has to be a list of at most {MOST_LISTED}"
        return
    known, says = _LISTS[name]
    for one in value:
        if not (isinstance(one, str) and known.fullmatch(one)):
            yield f"{name} may not have {str(one)[:60]!r}: {says}"


def entry_path(entry: str, paths: Collection[str]) -> str | None:
    """Return the path of the file that an entry names; None where there is none."""
    base = entry.partition(":")[0].replace(".", "/")
    return next((path for path in (f"{base}.py", f"{base}/__init__.py") if path in paths), None)
