"""Finds limits of a problem that a text leaves out, from what the catalogue holds alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Names of outputs, and what a text says of them.
Said = Sequence[tuple[Sequence[str], str]]


def left_out(problem: Mapping[str, Any], dtype: str, said: Said) -> list[str]:
    """Return what a text should say, but does not, of each output and changed argument."""
    return [
        f"{output} in {dtype}: {part}"
        for output in (*problem["outputs"], *problem["mutates"])
        for part in _due(problem, dtype, output)
        if not any(output in names and part in words for names, words in said)
    ]


def _due(problem: Mapping[str, Any], dtype: str, output: str) -> Iterator[str]:
    told = problem["compared"]
    limit = problem["output_tolerances"].get(output, problem["tolerances"])[dtype]
    if output in told["notes"]:
        yield told["notes"][output]
    if output in told["free"]:
        yield "not compared"
    elif output in told["whole"] or limit["atol"] == limit["rtol"] == 0:
        yield "x must equal ref exactly"
    else:
        yield f"bound is {limit['atol']:g} * rms(ref) + {limit['rtol']:g} * abs(ref)."
        if limit["rms"]:
            yield f"rms(abs(x - ref) / bound) <= {limit['rms']:g}"
        if limit["outliers"]:
            yield f"one in 1,000,000, at most {limit['outliers']}, may be off by up to 2 times"
