"""Computes the roofline bounds of a call from a problem's cost and a GPU's datasheet. No Django.

Pages, CSV and API call each bound a floor. The judge computes the same for every run it times; a
test holds both together. Costs in the catalogue are those of bfloat16.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from problems.topology import DATASHEETS, gpu_called

DTYPE = "bfloat16"
# By dtype: the rate at which its inputs can be multiplied, and their size beside bfloat16's.
# float32 counts as TF32, which every way to float32's accuracy on matrix units stays below.
RATES = {"bfloat16": "bfloat16", "float16": "float16", "float32": "tensorfloat32"}
LARGER = {"bfloat16": 1, "float16": 1, "float32": 2}


class FloorWords(NamedTuple):
    """Says how pages call a floor, what a cost counts for it, and that in a sentence."""

    name: str
    counted: str
    means: str


# In the order of a report's floors, by what reports and CSV call them.
FLOOR_WORDS = {
    "wire": FloorWords(
        "links",
        "bytes sent or received",
        "Bytes that the busiest rank must send or receive, over its links.",
    ),
    "hbm": FloorWords("memory", "bytes moved", "Bytes through the memory of a GPU."),
    "flops": FloorWords("arithmetic", "operations", "Operations, at the rate of the matrix units."),
    "latency": FloorWords(
        "latency",
        "exchanges",
        "Exchanges between GPUs that wait for each other, each at the least latency.",
    ),
}
LIMITER_WORDS = {code: words.name for code, words in FLOOR_WORDS.items()}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Holds the rates of each GPU of a node. `link_gb_s` is one way, all links together;
    `latency_us` is the least time until another GPU sees a write, None where nobody has measured
    it."""

    gpu: str
    link_gb_s: float
    hbm_gb_s: float
    l2_bytes: int
    matrix_tflop_s: Mapping[str, float | None]
    source: str
    latency_us: float | None = None

    @property
    def slug(self) -> str:
        """Return `h200-sxm`, for addresses."""
        return re.sub(r"[^a-z0-9]+", "-", self.gpu.lower())

    def flop_per_us(self, dtype: str = DTYPE) -> float:
        return (self.matrix_tflop_s[RATES[dtype]] or 0.0) * 1e6


@dataclass(frozen=True, kw_only=True)
class Floors:
    """Holds the least microseconds of a call, each as if nothing else took time."""

    wire_us: float
    hbm_us: float
    flops_us: float
    latency_us: float | None

    @property
    def bound_us(self) -> float:
        return max(self.named.values())

    @property
    def limiter(self) -> str:
        return max(self.named, key=lambda name: self.named[name])

    @property
    def named(self) -> dict[str, float]:
        return {
            "wire": self.wire_us,
            "hbm": self.hbm_us,
            "flops": self.flops_us,
            "latency": self.latency_us or 0.0,
        }


def floors(cost: Mapping[str, float], limits: Limits, calls: int = 1, dtype: str = DTYPE) -> Floors:
    """Return the bounds of a call among so many that are timed together: the last outputs need not
    have left the L2 in time. `cost` has `wire_bytes`, `hbm_bytes`, `flops` and `exchanges` of one
    call, as if all that moves were of the dtype."""
    written_late, larger = limits.l2_bytes / calls, LARGER[dtype]
    latency_us = limits.latency_us
    return Floors(
        wire_us=cost["wire_bytes"] * larger / (limits.link_gb_s * 1e3),
        hbm_us=max(0.0, cost["hbm_bytes"] * larger - written_late) / (limits.hbm_gb_s * 1e3),
        flops_us=cost["flops"] / limits.flop_per_us(dtype),
        latency_us=None if latency_us is None else cost["exchanges"] * latency_us,
    )


@functools.cache
def datasheets() -> dict[str, Limits]:
    """Return the limits of each GPU by the name that a driver gives it, without its vendor."""
    gpus = json.loads(DATASHEETS.read_text())["gpus"]
    return {name: Limits(**facts) for name, facts in gpus.items()}


def limits_called(slug: str) -> Limits | None:
    return next((limits for limits in datasheets().values() if limits.slug == slug), None)


def limits_of(gpu: str) -> Limits | None:
    """Return those of a GPU as a driver or a host names it: `NVIDIA H200`, `4 x NVIDIA H200`."""
    return datasheets().get(gpu_called(gpu).removeprefix("NVIDIA "))
