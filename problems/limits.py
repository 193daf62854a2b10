"""Word the limits that judge each output of a problem, for prompts and for the site.

Standard library only. A problem comes as the catalogue has it. The words are of `hardened`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .spec import ELEMENTS_AN_OUTLIER, OUTLIER_LIMIT, UPSTREAM_TOLERANCE

PATH = Path(__file__).with_name("compared.toml")
TERMS = (
    "x is an element of an output or of a changed argument, and ref its exact value. Each tensor "
    "on each rank is compared by itself. rms is the root mean square over its finite elements. "
    "Where ref is infinite or NaN, x must be the same; any other infinite or NaN x fails."
)
EXACT = "x must equal ref exactly."
FREE = "not compared: it may hold anything after the call."
UPSTREAM = (
    f"abs(x - ref) <= {UPSTREAM_TOLERANCE.atol:g} + {UPSTREAM_TOLERANCE.rtol:g} * abs(ref) for "
    "every output, where ref is what the reference returns; or x is at least as near to the exact "
    "answer as ref"
)


class Compared(NamedTuple):
    """Say of a problem's outputs and changed arguments, by name, what no tolerance says.

    `whole` ones are integers or booleans among others with a tolerance, `free` ones are not
    compared, and `notes` say what is correct besides.
    """

    whole: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    notes: Mapping[str, str] = {}


class Limit(NamedTuple):
    """Hold the words of a limit, and the outputs and changed arguments that it holds for."""

    outputs: tuple[str, ...]
    words: str


def compared(slug: str) -> Compared:
    """Return the entry of a problem in compared.toml."""
    told = _stored().get(slug, {})
    names = {kind: tuple(told.get(kind, ())) for kind in ("whole", "free")}
    return Compared(**names, notes=told.get("notes", {}))


@cache
def _stored() -> dict[str, dict[str, Any]]:
    return tomllib.loads(PATH.read_text())


def limits_of(problem: Mapping[str, Any], dtype: str) -> list[Limit]:
    """Return the limits of all outputs and changed arguments; those with the same share one.

    Raises KeyError for a dtype that the problem does not have.
    """
    told = problem.get("compared", {})
    groups: dict[str, list[str]] = {}
    for name in (*problem["outputs"], *problem["mutates"]):
        groups.setdefault(_words(problem, told, dtype, name), []).append(name)
    shared = [Limit(tuple(names), words) for words, names in groups.items()]
    return shared + [Limit((name,), words) for name, words in told.get("notes", {}).items()]


def _tolerance_of(problem: Mapping[str, Any], dtype: str, name: str) -> Mapping[str, Any]:
    """Return the tolerance of an output or a changed argument: its own, or the problem's."""
    own = problem.get("output_tolerances", {}).get(name, problem["tolerances"])
    found: Mapping[str, Any] = own[dtype]
    return found


def _words(problem: Mapping[str, Any], told: Mapping[str, Any], dtype: str, name: str) -> str:
    if name in told.get("free", ()):
        return FREE
    tolerance = _tolerance_of(problem, dtype, name)
    if name in told.get("whole", ()) or not (tolerance["atol"] or tolerance["rtol"]):
        return EXACT
    return " ".join(_bounds(tolerance))


def _bounds(tolerance: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each part of a tolerance that is not exact."""
    bound = f"{tolerance['atol']:g} * rms(ref) + {tolerance['rtol']:g} * abs(ref)"
    yield f"abs(x - ref) <= bound, where bound is {bound}."
    if limit := tolerance.get("rms"):
        yield f"rms(abs(x - ref) / bound) <= {limit:g} must hold as well."
    if most := tolerance.get("outliers"):
        yield (
            f"In a tensor of {ELEMENTS_AN_OUTLIER:,} elements or more, one in "
            f"{ELEMENTS_AN_OUTLIER:,}, at most {most}, may be off by up to {OUTLIER_LIMIT:g} times "
            "its bound."
        )
