"""Turns the best kernel of a problem into a function, after asking, and after a check."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .benchmark import Benchmark
from .catalogue import problem_called
from .credentials import site_called
from .failures import Misused
from .fetching import Fetched, best_kernel

Kernel = Callable[..., Any]
DTYPES = ("float32", "bfloat16", "float16")


def best(
    problem: str,
    inputs: Sequence[Any],
    *,
    hardware: str | None = None,
    site: str | None = None,
    trusted: str | None = None,
) -> Kernel:
    """Return `solution` of the best kernel of a problem, once you and your inputs agree.

    It shows the source and asks on the terminal before anything runs: it is somebody else's code,
    and runs here without a sandbox. `trusted`, the SHA-256 of a source that you have read, answers
    instead, as a job without a terminal needs. Every rank of an initialised process group calls
    this with its own `inputs`; the kernel must answer them as the reference does. Raises Misused
    where you decline, or the source is another, or an answer differs.
    """
    known = problem_called(problem)
    found = best_kernel(site_called(site), known, hardware)
    if trusted is None:
        _ask(found)
    elif trusted != found.digest:
        raise Misused(f"The best kernel is {found.digest} now.", "Read it: pkb fetch … --best.")
    solution = _function(f"{found.heading}{found.source}", "solution")
    reference = _function(Benchmark()[known.slug].reference_source, "reference")
    check_alike(known.slug, solution, reference, inputs)
    return solution


def check_alike(slug: str, solution: Kernel, reference: Kernel, inputs: Sequence[Any]) -> None:
    """Raise Misused unless both give the same answer, within the problem's tolerance, and leave the
    same in their arguments."""
    theirs, own = _copies(inputs), _copies(inputs)
    wanted, found = _flat([reference(*theirs), theirs]), _flat([solution(*own), own])
    tolerances = Benchmark()[slug].payload["tolerances"]
    if len(wanted) != len(found) or not all(
        _is_alike(one, other, tolerances) for one, other in zip(wanted, found)
    ):
        raise Misused(
            f"The kernel of {slug} answers these inputs differently from the reference.",
            "Do not use it: it was judged on other shapes or values.",
        )


def _ask(found: Fetched) -> None:
    if not sys.stdin.isatty():
        raise Misused(
            "Nobody can be asked here.", f"Read the source, then say trusted={found.digest!r}."
        )
    from .console import say

    say(f"{found.heading}{found.source}")
    if input("Run this on your machine, without a sandbox? [y/N] ").strip().lower() != "y":
        raise Misused("You declined.", "Nothing was run.")


def _function(source: str, name: str) -> Kernel:
    """Return a function of a source, which is run from a file: compilers ask for its lines."""
    import importlib.util

    folder = Path(tempfile.mkdtemp(prefix="pkb-best-"))
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"pkb_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Kernel = getattr(module, name)
    return found


def _copies(values: Any) -> list[Any]:
    return [one.detach().clone() if hasattr(one, "detach") else one for one in values]


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [each for one in value for each in _flat(one)]
    return [value]


def _is_alike(wanted: Any, found: Any, tolerances: Any) -> bool:
    if not hasattr(wanted, "detach"):
        return bool(wanted == found)
    if not hasattr(found, "detach") or (wanted.shape, wanted.dtype) != (found.shape, found.dtype):
        return False
    dtype = str(wanted.dtype).rpartition(".")[2]
    if dtype not in DTYPES:
        return bool((wanted == found).all())
    # Both sides round, so each may be off by the tolerance of one.
    limit = tolerances.get(dtype, tolerances["float32"])
    exact = wanted.double()
    rms = exact.square().mean().sqrt()
    allowed = 2 * (limit["atol"] * rms + limit["rtol"] * exact.abs())
    return bool(((found.double() - exact).abs() <= allowed).all())
