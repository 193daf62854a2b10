"""Defines what a calibration says: its messages, how samples become numbers, and both as a table.

Standard library only.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from evaluator.messages.report import GpuState
from evaluator.timing.limits import HardwareLimits

MICROSECONDS, GIGABYTES, TERAFLOPS = "us", "GB/s", "TFLOP/s"
# Of all ranks together, not of one GPU or pair.
EVERYWHERE = "all"


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Names something to measure; `stated` is the attribute of HardwareLimits to hold it
    against."""

    title: str
    unit: str
    stated: str | None = None


QUANTITIES: Mapping[str, Quantity] = {
    "link": Quantity(title="link, one pair", unit=GIGABYTES, stated="link_gb_s"),
    "links": Quantity(title="links, all pairs at once", unit=GIGABYTES, stated="link_gb_s"),
    "all_to_all": Quantity(title="NCCL all-to-all", unit=GIGABYTES, stated="link_gb_s"),
    "hbm_copy": Quantity(title="memory, copy", unit=GIGABYTES, stated="hbm_gb_s"),
    "hbm_read": Quantity(title="memory, sum", unit=GIGABYTES, stated="hbm_gb_s"),
    **{
        name: Quantity(title=f"product, {name}", unit=TERAFLOPS, stated=f"matrix_tflop_s.{name}")
        for name in ("bfloat16", "float16", "tensorfloat32", "float32", "float64", "float8")
    },
    "launch": Quantity(title="launch, back to back", unit=MICROSECONDS),
    "launch_and_wait": Quantity(title="launch, and wait for it", unit=MICROSECONDS),
    "all_reduce": Quantity(title="NCCL all-reduce, 1 element", unit=MICROSECONDS),
    "barrier": Quantity(title="symmetric-memory barrier", unit=MICROSECONDS),
    "signal_kernels": Quantity(title="signal one way, by kernels", unit=MICROSECONDS),
    "signal": Quantity(title="signal one way, in a kernel", unit=MICROSECONDS, stated="latency_us"),
}


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Holds samples that one process took. `where` is a GPU, a pair, or EVERYWHERE."""

    quantity: str
    where: str
    samples: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Missed:
    """Says why something could not be measured."""

    what: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Said:
    """Holds one line of a measuring process."""

    found: Samples | None = None
    missed: Missed | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Sums up samples; `best` is the highest rate or the shortest time of all of them."""

    quantity: str
    where: str
    unit: str
    samples: int
    median: float
    best: float
    datasheet: float | None


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Holds all that was measured. `unmeasured` is what could not be, and why; `states` are the
    GPUs at those moments, of several a second, at which each drew the most power."""

    world_size: int
    gpus: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    unmeasured: Mapping[str, str]
    states: tuple[GpuState, ...]
    driver: str | None
    versions: Mapping[str, str]
    settings: Mapping[str, str]
    date: str
    wall_s: float
    method: str


def merged(found: Iterable[Samples]) -> tuple[Samples, ...]:
    """Return one Found for each quantity and place: of every sample, what the slowest process
    has."""
    together: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for own in found:
        together.setdefault((own.quantity, own.where), []).append(own.samples)
    return tuple(
        Samples(quantity=quantity, where=where, samples=_slowest(quantity, samples))
        for (quantity, where), samples in together.items()
    )


def measured(found: Samples, limits: HardwareLimits | None) -> Measurement:
    """Return the median and the best of the samples, beside the datasheet's number."""
    quantity = QUANTITIES[found.quantity]
    stated = limits is not None and quantity.stated is not None
    return Measurement(
        quantity=found.quantity,
        where=found.where,
        unit=quantity.unit,
        samples=len(found.samples),
        median=statistics.median(found.samples),
        best=min(found.samples) if quantity.unit == MICROSECONDS else max(found.samples),
        datasheet=attrgetter(quantity.stated or "")(limits) if stated else None,
    )


def share(measurement: Measurement) -> float | None:
    """Return the share of what the datasheet states, by the median: 1.0 is all of it; None where it
    states nothing."""
    if measurement.datasheet is None:
        return None
    if measurement.unit == MICROSECONDS:
        return measurement.datasheet / measurement.median
    return measurement.median / measurement.datasheet


def pretty(calibration: Calibration) -> str:
    """Return a table with one line for each quantity, with the slowest and the fastest place where
    there are more."""
    versions = ", ".join(f"{name} {text}" for name, text in calibration.versions.items())
    lines = [
        f"{', '.join(calibration.gpus)}; driver {calibration.driver or 'unknown'}",
        f"{versions}; {calibration.date}, {calibration.wall_s:.0f} s",
        f"{'':30}{'median':>17} {'best':>8}  {'unit':8}{'datasheet':>10}{'share':>7}",
    ]
    ranked = sorted(calibration.measurements, key=lambda own: list(QUANTITIES).index(own.quantity))
    for _, places in groupby(ranked, key=lambda own: own.quantity):
        lines.append(_line(list(places)))
    lines += [f"not measured: {what}: {why}" for what, why in calibration.unmeasured.items()]
    for gpu, state in enumerate(calibration.states):
        slowed = (
            f", slowed by {', '.join(state.throttle_reasons)}" if state.throttle_reasons else ""
        )
        lines.append(
            f"GPU {gpu} at its most power: {state.sm_mhz} MHz, memory {state.memory_mhz} MHz,"
            f" {state.power_w:.0f} W, {state.temperature_c} C{slowed}"
        )
    return "\n".join(lines)


def _line(places: Sequence[Measurement]) -> str:
    quantity, one = QUANTITIES[places[0].quantity], places[0]
    low, high = (edge(own.median for own in places) for edge in (min, max))
    spread = _number(low) if len(places) == 1 else f"{_number(low)} - {_number(high)}"
    better = min if one.unit == MICROSECONDS else max
    best = better(own.best for own in places)
    shares = [part for own in places if (part := share(own)) is not None]
    stated = "" if one.datasheet is None else _number(one.datasheet)
    least = f"{min(shares):.0%}" if shares else ""
    line = f"{quantity.title:30}{spread:>17} {_number(best):>8}  {one.unit:8}{stated:>10}{least:>7}"
    return line.rstrip()


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _slowest(quantity: str, samples: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the slowest of each sample. Processes that took part in the same steps have as many,
    unless one died."""
    worse = max if QUANTITIES[quantity].unit == MICROSECONDS else min
    return tuple(worse(same) for same in zip(*samples, strict=False))
