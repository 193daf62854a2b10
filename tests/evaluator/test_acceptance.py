"""What `benchmarks/gpu_acceptance.py` makes of results, and what is stored of its last run."""

from __future__ import annotations

import json
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from tests.benchmark_scripts import BENCHMARKS, script
from tests.evaluator.kernel_files import named

CHEAT, HONEST = "misbehaving/ticks_early", "honest/captured_graph"
Results = dict[str, dict[str, Any]]


@pytest.fixture
def acceptance() -> ModuleType:
    return script("gpu_acceptance")


@pytest.fixture
def stored() -> dict[str, Any]:
    text = (BENCHMARKS / "results" / "gpu-acceptance-h200x2.json").read_text()
    document: dict[str, Any] = json.loads(text)
    return document


def test_what_is_stored_is_what_the_rules_of_today_say(
    acceptance: ModuleType, stored: dict[str, Any]
) -> None:
    results: Results = acceptance.results_of(stored)
    kernels = dict(acceptance.turns([], None))
    assert set(results) | set(stored["left_out"]) <= set(kernels)
    again = {name: acceptance.read_again(kernels[name], results[name]) for name in results}
    assert again == results
    assert stored["unexpected"] == [name for name in results if results[name]["complaints"]]
    assert stored["checks"] == [vars(check) for check in acceptance.checks_of(results)]


def test_an_earlier_result_is_read_by_the_header_of_today(
    acceptance: ModuleType, stored: dict[str, Any]
) -> None:
    earlier = acceptance.results_of(stored)[CHEAT]
    low = earlier["timing"]["speedup_low"]
    today = replace(named("gpu/misbehaving", "ticks_early"), ranks=(1,), speedup_below=1.4)
    found = acceptance.read_again(today, {**earlier, "complaints": ["of yesterday"]})
    assert found["complaints"] == ["names ranks () instead of (1,)", f"{low:.2f}x, not below 1.4x"]
    failed = {"message": "OSError: no", "complaints": ["no report"]}
    assert acceptance.read_again(today, failed) == failed


@pytest.mark.parametrize(("low", "passed"), [(1.25, True), (1.27, False)])
def test_a_cheat_that_gains_over_its_honest_twin_is_found(
    acceptance: ModuleType, low: float, passed: bool
) -> None:
    results = {CHEAT: _timed(66.0, low, 1.8), HONEST: _timed(70.0, 1.0, 1.2)}
    (check,) = acceptance.checks_of(results)
    assert (check.name, check.passed) == (f"{CHEAT} gains nothing over {HONEST}", passed)


@pytest.mark.parametrize(("long_us", "passed"), [(4900.0, True), (4600.0, False)])
def test_a_sleep_of_which_a_part_is_not_timed_is_found(
    acceptance: ModuleType, long_us: float, passed: bool
) -> None:
    results = {
        "honest/nccl_all_reduce": _timed(120.0, 0.9, 1.1),
        "honest/sleeps_five_milliseconds": _timed(120.0 + long_us, 0.02, 0.03),
    }
    (check,) = acceptance.checks_of(results)
    assert check.passed is passed


def _timed(kernel_us: float, low: float, high: float) -> dict[str, Any]:
    return {"timing": {"kernel_us": kernel_us, "speedup_low": low, "speedup_high": high}}
