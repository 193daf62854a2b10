"""Knows the problems without a site: names, signatures and what they can be judged on.

`problems.json` and `imports.json` are made by `python -m problems export`.
"""

from __future__ import annotations

import functools
import json
import pkgutil
from difflib import get_close_matches
from typing import NamedTuple

from .failures import Misused

BACKENDS = ("pytorch", "cpp", "cuda", "triton", "parallelkittens")
CPU_BACKENDS = ("pytorch", "cpp")
_NEWER = "If it is new, fetch today's pkb.pyz from the site."


class Parameter(NamedTuple):
    """Names an argument of a problem; `default` is its text, None where it is required."""

    name: str
    annotation: str
    default: str | None


class Problem(NamedTuple):
    """Describes a problem: what kernels are given, and on what they can be judged."""

    number: int
    slug: str
    title: str
    parameters: tuple[Parameter, ...]
    world_sizes: tuple[int, ...]
    ranked_from: int
    sizes: tuple[str, ...]
    dtypes: tuple[str, ...]
    peer_access: bool
    multicast: bool

    @property
    def folder(self) -> str:
        """Return its name in archives, `13_gemm_allreduce`."""
        return f"{self.number}_{self.slug}"


@functools.cache
def problems() -> dict[str, Problem]:
    """Return every problem by its number, as text, and by its slug."""
    data = pkgutil.get_data(__package__, "problems.json")
    rows = [_problem(row) for row in json.loads(data or b"[]")]
    return {**{str(row.number): row for row in rows}, **{row.slug: row for row in rows}}


@functools.cache
def importable() -> frozenset[str]:
    """Return the outermost modules that hosts of the release have, besides Python's own."""
    data = pkgutil.get_data(__package__, "imports.json")
    return frozenset(json.loads(data or b"[]"))


def _problem(row: dict[str, object]) -> Problem:
    values = {name: _frozen(row[name]) for name in Problem._fields if name != "parameters"}
    parameters = tuple(Parameter(*each) for each in row["parameters"])  # type: ignore[attr-defined]
    return Problem(parameters=parameters, **values)  # type: ignore[arg-type]


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def problem_called(name: str) -> Problem:
    """Find a problem by number or slug, or by both as in a file's name. Raises Misused."""
    known = problems()
    if found := known.get(str(int(name)) if name.isdigit() else name):
        return found
    number, _, slug = name.partition("_")
    if number.isdigit() and (found := known.get(slug)) and found.number == int(number):
        return found
    near = get_close_matches(slug if number.isdigit() else name, known, n=3, cutoff=0.5)
    meant = f"Did you mean {' or '.join(known[one].folder for one in near)}? " if near else ""
    raise Misused(f"There is no problem {name}.", f"{meant}{_NEWER}", code="unknown_problem")
