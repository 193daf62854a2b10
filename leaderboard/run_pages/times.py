"""Lists every time of a call that a report holds: what each includes, how noisy it is, and which
one is scored."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from leaderboard.delivery.cells import microseconds_text, ratio_text, share_text
from leaderboard.kit.json_types import Report
from leaderboard.metrics.floors import FLOOR_WORDS, LIMITER_WORDS

# Widths of the 95 % interval, as a share of the speedup, up to which a score is so noisy.
NOISE = ((0.1, "Little noise"), (0.3, "Some noise"))
MUCH = "Much noise"
LEAST_SAMPLES = 5  # for deciles
NOISY_HOST = "noisy_host"


class CallTime(NamedTuple):
    """Holds one way to time a call, in microseconds; None where that side has none."""

    key: str
    name: str
    kernel_us: float | None
    baseline_us: float | None
    includes: str
    noise: str = ""
    is_scored: bool = False


def times_single_calls(timing: Report) -> bool:
    """Return True for a timing of single calls (judge 10), False for one of batches (up to 9)."""
    return bool(timing.get("kernel"))


def call_times(report: Report) -> list[CallTime]:
    """Return the times of a timed report, the score first and the bound last."""
    timing = report["timing"]
    measured = _of_calls if times_single_calls(timing) else _of_batches
    return [*measured(timing, report), *_bound(report)]


def _of_calls(timing: Report, report: Report) -> Iterator[CallTime]:
    kernel, reference = timing["kernel"], timing["baseline"]
    on_gpus = timing.get("ahead") is not None
    what = (
        "GPU time: from readable inputs until the last rank has committed its outputs."
        if on_gpus
        else "From readable inputs until the last rank has committed its outputs, Python included."
    )
    yield CallTime(
        "answer_us",
        "Time to answer",
        kernel["answer_us"],
        reference["answer_us"],
        f"{what} {microseconds_text(timing['empty_us'])} of an empty call are subtracted.",
        noise(report),
        is_scored=True,
    )
    others = (
        ("call_us", "Call time", "Python, launches and GPU work: nothing is queued ahead."),
        ("series_us", "Back to back", "One of several calls that are queued behind one gate."),
    )
    for key, name, says in others:
        if kernel[key] is not None and reference[key] is not None:
            yield CallTime(key, name, kernel[key], reference[key], says)
    yield from _reference_alone(timing)


def _reference_alone(timing: Report) -> Iterator[CallTime]:
    before, after = timing.get("before_us"), timing.get("after_us")
    if before is not None:
        how = "Before the kernel's processes existed."
        yield CallTime("before_us", "Reference alone, before", None, before, how)
    if after is not None:
        drift = f"{share_text(abs(after / before - 1))} off the time before." if before else ""
        how = "After the kernel's processes were gone."
        yield CallTime("after_us", "Reference alone, after", None, after, how, drift)


def _of_batches(timing: Report, report: Report) -> Iterator[CallTime]:
    calls, empty = timing["burst_calls"], microseconds_text(timing["empty_us"])
    kernel_us, baseline_us = timing["kernel_us"], timing["baseline_us"]
    many = "1 call" if calls == 1 else f"{calls} calls, the mean of a call"
    says = f"A batch of {many}. {empty} of an empty batch are subtracted from each."
    score = CallTime("batch_us", "In a batch", kernel_us, baseline_us, says, noise(report), True)
    yield score
    singles = timing.get("kernel_single_us"), timing.get("baseline_single_us")
    if all(singles):
        yield CallTime("single_us", "One call at a time", *singles, "Batches of one call.")
    own = timing.get("kernel_events_us"), timing.get("baseline_events_us")
    if all(own):
        how = "The mean of the slowest rank. Ranks report it themselves, so it is never scored."
        yield CallTime("events_us", "By PKB's own harness", *own, how)


def limiter_of(floors: Mapping[str, float]) -> str:
    """Return the code of the floor that needs the most time: the bound."""
    return max(FLOOR_WORDS, key=lambda name: floors[f"{name}_us"])


def _bound(report: Report) -> Iterator[CallTime]:
    if floors := report.get("floors"):
        limiter = limiter_of(floors)
        how = f"The least time that the hardware allows, limited by {LIMITER_WORDS[limiter]}."
        yield CallTime("bound_us", "Bound", floors[f"{limiter}_us"], None, how)


def noise_word(timing: Report) -> str:
    """Return how noisy a score is, by the width of its interval."""
    width = (timing["speedup_high"] - timing["speedup_low"]) / timing["speedup"]
    return next((word for most, word in NOISE if width <= most), MUCH)


def noise(report: Report) -> str:
    """Say in sentences how noisy the score is: by its interval, its calls and its host."""
    timing = report["timing"]
    low, high = timing["speedup_low"], timing["speedup_high"]
    said = [f"{noise_word(timing)}: surely {ratio_text(low)} to {ratio_text(high)} (95 %)."]
    if low <= 1.0 <= high:
        said.append("Not distinguishable from the reference.")
    samples = timing["kernel_bursts_us"]
    if len(samples) >= LEAST_SAMPLES:
        deciles = statistics.quantiles(samples, n=10, method="inclusive")
        span = " to ".join(map(microseconds_text, (deciles[0], deciles[-1])))
        said.append(f"8 of 10 samples: {span}.")
    if timing.get("resolution_us"):
        said.append(f"Times closer than {microseconds_text(timing['resolution_us'])} are equal.")
    if NOISY_HOST in report.get("flags", ()):
        said.append("The host was disturbed: the reference's own times vary or drift.")
    return " ".join(said)
