"""Reads kernels in the folders in which PKB's own harnesses write them.

`solutions_<backend>_<precision>_<hardware>_<provider>_<model>/<number>_<slug>_<backend>.py`, or
`solutions_<backend>/` where an agent wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from .attempts import Attempt
from .catalogue import Problem, problem_called, problems
from .console import note
from .failures import Misused
from .sources import MAX_SOURCE_BYTES, Named, backend_called, named, read

_TREE = re.compile(
    r"solutions_(?P<backend>[a-z]+)(?:_(?P<precision>fp32|fp16|bf16)_"
    r"(?:none|(?P<gpu>[a-z]\w{0,15}?)_(?P<count>\d{1,3}))"
    r"_(?P<provider>[a-z][a-z0-9-]{0,31})_(?P<model>[A-Za-z0-9][\w.\-]{0,79}))?",
    re.ASCII,
)
_ATTEMPT = re.compile(r"attempt_(\d{1,3})", re.ASCII)
_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
# Runs other people's models, whose names it begins with their organisation.
_HOST = "together"
# In older folders there was one problem more before the 33rd, and some had other names.
_FIRST_MOVED = 33
_RENAMED = {
    "11_gemm_allgather_AT": "allgather_gemm_AT",
    "12_gemm_allgather": "allgather_gemm",
    "14_gemm_allscatter": "gemm_allgather",
    "18_rms_norm": "tp_rms_norm",
}
_WITHDRAWN = ("46_fsdp_adamw_sharded", "47_fsdp_adamw_sharded")


class FoundKernel(NamedTuple):
    """Holds a kernel's file in a tree; `attempt` is told by a folder around it, else None."""

    problem: Problem
    backend: str
    path: Path
    attempt: int | None
    tree: str

    @property
    def name(self) -> str:
        """Return what it is called in its tree, without the folders between."""
        return f"{self.tree}/{self.path.name}"


def trees(folder: Path) -> list[Path]:
    """Return the folders of kernels at or below a folder."""
    below = [folder, *sorted(path for path in folder.rglob("solutions_*") if path.is_dir())]
    return [path for path in below if _TREE.fullmatch(path.name)]


def kernels(tree: Path) -> Iterator[FoundKernel]:
    """Yield the kernels of such a folder; those of withdrawn problems are left out, and named.

    Raises Misused naming a file that is called as no kernel is.
    """
    for path in sorted(tree.rglob("*.py")):
        below = PurePosixPath(tree.name) / path.relative_to(tree).as_posix()
        said = named(below)
        if said is None or said.backend is None or said.number is None:
            fix = "Kernels are called 1_allreduce_cuda.py; take other files out."
            raise Misused(f"{path} is no kernel.", fix)
        if said.problem in _WITHDRAWN:
            note(f"left out, since PKB has withdrawn the problem: {path}")
            continue
        around = [found for part in path.parts if (found := _ATTEMPT.fullmatch(part))]
        attempt = int(around[-1][1]) if around else None
        yield FoundKernel(today(said), said.backend, path, attempt, tree.name)


def today(said: Named) -> Problem:
    """Return today's problem of a number and a name that may be older. Raises Misused."""
    known = problems().get(said.slug)
    if known and said.number == str(known.number):
        return known
    older = problems().get(_RENAMED.get(said.problem, said.slug))
    if older and said.number == str(older.number + (older.number >= _FIRST_MOVED)):
        return older
    return problem_called(said.problem)


def text_of(path: Path) -> bytes:
    """Return a kernel as the site takes it. Raises Misused."""
    data = read(path, MAX_SOURCE_BYTES)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise Misused(f"{path} is not UTF-8 (byte {error.start}).", "Save it as UTF-8.") from None
    return data


def attempts(tree: Path, number: int) -> list[Attempt]:
    """Return what `generate_kernel.py` wrote into a folder: one answer a problem."""
    made = []
    for found in kernels(tree):
        source = text_of(found.path)
        ended = "answered" if source.strip() else "no_answer"
        place = found.attempt or number
        made.append(
            Attempt(found.problem, place, found.backend, source, ended, converted_from=found.name)
        )
    return made


def told(tree: Path) -> dict[str, Any]:
    """Return what a folder's name says, as a manifest calls it."""
    name = _TREE.fullmatch(tree.name)
    if name is None or name["model"] is None:
        return {}
    model = name["model"]
    if name["provider"] == _HOST and "_" in model:
        model = model.partition("_")[2]
    return {
        "model": model,
        "provider": name["provider"],
        "backend": backend_called(name["backend"]),
        "hardware": f"{name['gpu']}x{name['count']}" if name["gpu"] else None,
        "world_size": int(name["count"]) if name["gpu"] else None,
        "dtype": _DTYPES[name["precision"]],
    }
