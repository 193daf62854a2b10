"""In what the results of `gpu_acceptance.py` have to agree with each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Results = dict[str, dict[str, Any]]

PLAIN = "honest/nccl_all_reduce"
SLEEPS_US = {
    PLAIN: 0.0,
    "honest/sleeps_a_fifth_of_a_millisecond": 200.0,
    "honest/sleeps_one_millisecond": 1000.0,
    "honest/sleeps_five_milliseconds": 5000.0,
}
SLEEP_PAIRS = ((0.0, 5000.0), (200.0, 1000.0), (1000.0, 5000.0))
SLEEP_TOLERANCE = 0.05
# A graph gains what a host takes to launch (1.26 and 1.88x in two runs), so only its twin bounds
# `ticks_early`.
TWINS = {
    "misbehaving/ticks_early": "honest/captured_graph",
    "misbehaving/slows_the_baseline": PLAIN,
    "misbehaving/persisting_cache": PLAIN,
    "misbehaving/takes_all_memory": PLAIN,
}
GAIN_TOLERANCE = 1.05


@dataclass(frozen=True, kw_only=True)
class Check:
    name: str
    passed: bool
    detail: str


def checks_of(results: Results) -> list[Check]:
    return [*sleep_checks(results), *steadiness_checks(results), *gain_checks(results)]


def sleep_checks(results: Results) -> Iterator[Check]:
    kernel_us = {
        sleep_us: results[name]["timing"]["kernel_us"]
        for name, sleep_us in SLEEPS_US.items()
        if _is_timed(results, name)
    }
    for short, long in SLEEP_PAIRS:
        if short in kernel_us and long in kernel_us:
            found, expected = kernel_us[long] - kernel_us[short], long - short
            yield Check(
                name=f"sleep of {long:g} us minus sleep of {short:g} us",
                passed=abs(found - expected) <= SLEEP_TOLERANCE * expected,
                detail=f"{found:.1f} us, which should be {expected:g} us",
            )


def steadiness_checks(results: Results) -> Iterator[Check]:
    """Whether the plain kernel's speedup is the same each time it is judged."""
    if not _is_timed(results, PLAIN):
        return
    first = results[PLAIN]["timing"]
    for name in results:
        if name.startswith(f"{PLAIN} ") and _is_timed(results, name):
            later = results[name]["timing"]
            yield Check(
                name=name,
                passed=first["speedup_low"] <= later["speedup_high"]
                and later["speedup_low"] <= first["speedup_high"],
                detail=f"{_interval(later)} here, {_interval(first)} at first; "
                f"{later['kernel_us']:.1f} and {first['kernel_us']:.1f} us",
            )


def gain_checks(results: Results) -> Iterator[Check]:
    """Whether a cheat that was not caught gains over an honest kernel that does the same."""
    for cheat, honest in TWINS.items():
        if _is_timed(results, cheat) and _is_timed(results, honest):
            found, fair = results[cheat]["timing"], results[honest]["timing"]
            yield Check(
                name=f"{cheat} gains nothing over {honest}",
                passed=found["speedup_low"] <= GAIN_TOLERANCE * fair["speedup_high"],
                detail=f"{_interval(found)} against {_interval(fair)}; "
                f"{found['kernel_us']:.1f} and {fair['kernel_us']:.1f} us",
            )


def _is_timed(results: Results, name: str) -> bool:
    return bool(results.get(name, {}).get("timing"))


def _interval(timing: dict[str, Any]) -> str:
    return f"{timing['speedup_low']:.3f} to {timing['speedup_high']:.3f}x"
