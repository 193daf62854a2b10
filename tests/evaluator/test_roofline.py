"""Floors are lower bounds, of synthetic costs and of every problem; limits are found by name."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import problems
from evaluator.host.gpus import Gpu
from evaluator.judge.findings import Findings
from evaluator.judge.phases import LEAST_CALL_US, check_bound
from evaluator.messages.job import Dtype, Job
from evaluator.messages.report import Phase, Verdict
from evaluator.messages.roofline_bounds import RooflineBounds
from evaluator.timing.limits import HardwareLimits, limits_of
from evaluator.timing.roofline import (
    FEWER_FLOPS,
    MARGIN,
    exceeds_roofline,
    roofline_bounds,
    unbeatable_us,
)
from problems.spec import Cost
from tests.evaluator.test_messages import TIMING

BASELINES = Path(__file__).parents[2] / "fixtures" / "baselines-h200x4.json"
BATCH_CALLS = 16
ITEM_BYTES = {Dtype.FLOAT32: 4, Dtype.BFLOAT16: 2, Dtype.FLOAT16: 2}
LISTED = (
    "NVIDIA H200",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA B200",
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA A100-SXM4-40GB",
)

amounts = st.floats(min_value=0, max_value=1e15)
costs = st.builds(
    Cost, wire_bytes=amounts, flops=amounts, hbm_bytes=amounts, exchanges=st.integers(0, 100)
)
dtypes = st.sampled_from(Dtype)
batches = st.integers(1, 1000)
times_us = st.floats(min_value=1e-3, max_value=1e12)
names_of_gpus = st.sampled_from(LISTED)


def listed(name: str = "NVIDIA H200") -> HardwareLimits:
    limits = limits_of(name)
    assert limits is not None
    return limits


def floor(**changes: float) -> RooflineBounds:
    return replace(RooflineBounds(wire_us=0.0, hbm_us=0.0, flops_us=0.0, latency_us=0.0), **changes)


def test_an_h200_moves_and_multiplies_as_its_datasheet_says() -> None:
    cost = Cost(wire_bytes=450e3, flops=989.5e6, hbm_bytes=4800e3 * 1000, exchanges=3)
    limits = replace(listed(), latency_us=0.5)
    found = roofline_bounds(cost, Dtype.BFLOAT16, limits, batch_calls=BATCH_CALLS)
    assert found.wire_us == pytest.approx(1.0)
    assert found.flops_us == pytest.approx(1.0)
    assert found.latency_us == pytest.approx(1.5)
    assert found.hbm_us == pytest.approx(1000 - (60 << 20) / BATCH_CALLS / 4800e3)


def test_float32_is_held_against_the_rate_of_tf32() -> None:
    cost = Cost(wire_bytes=0, flops=494.7e6, hbm_bytes=0)
    assert roofline_bounds(cost, Dtype.FLOAT32, listed(), 1).flops_us == pytest.approx(1.0)
    assert roofline_bounds(cost, Dtype.FLOAT16, listed(), 1).flops_us == pytest.approx(
        0.5, rel=1e-3
    )


def test_an_unknown_latency_bounds_nothing() -> None:
    cost = Cost(wire_bytes=1, flops=1, hbm_bytes=1, exchanges=9)
    assert (
        roofline_bounds(cost, Dtype.FLOAT32, replace(listed(), latency_us=None), 1).latency_us
        == 0.0
    )


@pytest.mark.parametrize("limiter", ["wire", "hbm", "flops", "latency"])
def test_the_limiter_is_the_largest_floor(limiter: str) -> None:
    found = replace(
        RooflineBounds(wire_us=1.0, hbm_us=1.0, flops_us=1.0, latency_us=1.0),
        **{f"{limiter}_us": 2.0},
    )
    assert found.limiter == limiter
    assert found.bound_us == 2.0


@given(costs, dtypes, names_of_gpus, batches)
def test_floors_are_finite_and_never_negative(
    cost: Cost, dtype: Dtype, gpu: str, batch_calls: int
) -> None:
    found = roofline_bounds(cost, dtype, listed(gpu), batch_calls)
    parts = (found.wire_us, found.hbm_us, found.flops_us, found.latency_us)
    assert all(math.isfinite(part) and part >= 0 for part in parts)
    assert found.bound_us == max(parts)
    assert getattr(found, f"{found.limiter}_us") == found.bound_us
    assert unbeatable_us(found) <= found.bound_us


@given(costs, names_of_gpus, batches)
def test_a_batch_saves_no_more_memory_traffic_than_one_l2(
    cost: Cost, gpu: str, batch_calls: int
) -> None:
    limits = listed(gpu)
    found = roofline_bounds(cost, Dtype.BFLOAT16, limits, batch_calls)
    moved = found.hbm_us * limits.hbm_gb_s * 1e3 * batch_calls
    asked = cost.hbm_bytes * batch_calls
    assert moved <= asked * (1 + 1e-9)
    assert moved >= (asked - limits.l2_bytes) * (1 - 1e-9) - 1


@given(costs, names_of_gpus, batches, batches)
def test_longer_batches_hide_less(cost: Cost, gpu: str, one: int, other: int) -> None:
    short, long = sorted((one, other))
    few = roofline_bounds(cost, Dtype.BFLOAT16, listed(gpu), short)
    many = roofline_bounds(cost, Dtype.BFLOAT16, listed(gpu), long)
    assert few.hbm_us <= many.hbm_us
    assert few.wire_us == many.wire_us


@given(costs, st.floats(1.0, 100.0), dtypes, batches)
def test_more_work_never_has_a_lower_floor(
    cost: Cost, times: float, dtype: Dtype, batch_calls: int
) -> None:
    more = Cost(
        wire_bytes=times * cost.wire_bytes,
        flops=times * cost.flops,
        hbm_bytes=times * cost.hbm_bytes,
        exchanges=cost.exchanges,
    )
    less = roofline_bounds(cost, dtype, listed(), batch_calls)
    slower = roofline_bounds(more, dtype, listed(), batch_calls)
    assert unbeatable_us(slower) >= unbeatable_us(less) * (1 - 1e-9)


@given(costs, dtypes, batches, times_us, st.floats(1.0, 1e6))
def test_who_is_slower_than_a_possible_time_is_possible_too(
    cost: Cost, dtype: Dtype, batch_calls: int, kernel_us: float, times: float
) -> None:
    found = roofline_bounds(cost, dtype, listed(), batch_calls)
    if not exceeds_roofline(found, kernel_us):
        assert not exceeds_roofline(found, kernel_us * times)
    assert found.utilisation(kernel_us * times) <= found.utilisation(kernel_us) * (1 + 1e-9)


@pytest.mark.parametrize("part", ["wire_us", "hbm_us"])
def test_nobody_moves_bytes_faster_than_the_hardware(part: str) -> None:
    found = floor(**{part: 100.0})
    assert not exceeds_roofline(found, 100.0 * MARGIN)
    assert exceeds_roofline(found, 100.0 * MARGIN - 0.1)


def _run_on(gpu_name: str, kernel_us: float, resolution_us: float = 0.0) -> Any:
    gpu = Gpu(index=0, minor=0, uuid="x", name=gpu_name, memory_bytes=1)
    timing = replace(TIMING, kernel_us=kernel_us, burst_calls=1, resolution_us=resolution_us)
    return SimpleNamespace(
        job=Job(problem="allreduce", source="x", size="large", dtype=Dtype.BFLOAT16),
        oracle=SimpleNamespace(module=problems.load(problems.find("allreduce"))),
        host=SimpleNamespace(gpus=(gpu,)),
        findings=Findings(timing=timing),
    )


@pytest.mark.parametrize(
    ("kernel_us", "resolution_us", "is_found"),
    [(0.001, 8.0, True), (255.0, 0.0, True), (255.0, 5.0, True), (310.0, 0.0, False)],
)
def test_a_time_below_the_bound_is_always_faster_than_light(
    kernel_us: float, resolution_us: float, is_found: bool
) -> None:
    context = _run_on("NVIDIA H200", kernel_us, resolution_us=resolution_us)
    found = check_bound(context)
    assert context.findings.bounds is not None
    assert 280.0 < unbeatable_us(context.findings.bounds) < 310.0
    assert (found and found.verdict) == (Verdict.FASTER_THAN_LIGHT if is_found else None)
    if found:
        assert (context.findings.phase, found.cause) == (Phase.TIMED, "bound")
        assert f"{kernel_us:.1f} us a call, where this hardware needs" in found.message


def test_a_time_below_the_bound_by_no_more_than_the_resolution_is_the_bound() -> None:
    context = _run_on("NVIDIA H200", 255.0, resolution_us=50.0)
    assert check_bound(context) is None
    bound_us = MARGIN * unbeatable_us(context.findings.bounds)
    assert context.findings.timing.kernel_us == pytest.approx(bound_us, abs=0.001)
    assert context.findings.timing.kernel_us >= bound_us


@pytest.mark.parametrize("kernel_us", [LEAST_CALL_US - 0.1, LEAST_CALL_US])
def test_no_gpu_answers_in_less_than_a_launch_takes(kernel_us: float) -> None:
    context = _run_on("A GPU that nobody knows", kernel_us)
    found = check_bound(context)
    assert context.findings.bounds is None
    assert (found is not None) is (kernel_us < LEAST_CALL_US)
    context.host.gpus = ()
    assert check_bound(context) is None


def test_arithmetic_may_be_saved_by_another_algorithm_but_not_left_out() -> None:
    found = floor(flops_us=100.0)
    assert not exceeds_roofline(found, 100.0 / FEWER_FLOPS)
    assert exceeds_roofline(found, 100.0 / FEWER_FLOPS * MARGIN - 0.1)
    assert found.utilisation(80.0) == pytest.approx(1.25)


def test_calls_of_a_batch_may_wait_for_their_exchanges_at_once() -> None:
    found = floor(latency_us=100.0, wire_us=1.0)
    assert found.limiter == "latency"
    assert not exceeds_roofline(found, 2.0)


def test_times_and_batches_that_make_no_sense_are_refused() -> None:
    for kernel_us in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="must be positive"):
            exceeds_roofline(floor(wire_us=1.0), kernel_us)
        with pytest.raises(ValueError, match="must be positive"):
            floor(wire_us=1.0).utilisation(kernel_us)
    with pytest.raises(ValueError, match="at least one call"):
        roofline_bounds(Cost(wire_bytes=1, flops=1, hbm_bytes=1), Dtype.FLOAT32, listed(), 0)


@pytest.mark.parametrize("name", LISTED)
def test_the_rates_of_one_gpu_fit_each_other(name: str) -> None:
    limits = listed(name)
    rates = limits.matrix_tflop_s
    assert rates.bfloat16 == rates.float16
    assert rates.bfloat16 == pytest.approx(2 * rates.tensorfloat32, rel=0.01)
    assert rates.float8 is None or rates.float8 == pytest.approx(2 * rates.bfloat16, rel=0.01)
    assert rates.float64 <= rates.float32 < rates.tensorfloat32
    assert limits.link_gb_s < limits.hbm_gb_s
    assert limits.source


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA H200 NVL",
        "NVIDIA H200 MIG 1g.18gb",
        "NVIDIA H100 PCIe",
        "NVIDIA GH200 480GB",
        "4 x NVIDIA H200",
        "2 x AMD EPYC 7B13",
        "cpu",
        "",
    ],
)
def test_other_hardware_has_no_known_limits(name: str) -> None:
    assert limits_of(name) is None


def test_older_drivers_leave_out_the_vendor() -> None:
    assert limits_of("A100-SXM4-40GB") == limits_of("NVIDIA A100-SXM4-40GB ")


@pytest.mark.parametrize("name", problems.names())
def test_every_problem_has_floors_at_every_size(name: str) -> None:
    module = problems.load(name)
    for world_size in module.problem.world_sizes:
        for size in module.problem.sizes.values():
            dims = module.dims(size.m, size.n, world_size)
            for dtype, item_bytes in ITEM_BYTES.items():
                cost = module.cost(dims, world_size, item_bytes)
                found = roofline_bounds(cost, dtype, listed(), BATCH_CALLS)
                parts = (found.wire_us, found.hbm_us, found.flops_us, found.latency_us)
                assert all(math.isfinite(part) and part >= 0 for part in parts)
                assert found.bound_us > 0


def test_no_measured_reference_is_faster_than_light() -> None:
    document = json.loads(BASELINES.read_text())
    found = {slug: floors_of_reference(slug, document) for slug in document["problems"]}
    times_us = {slug: own["us"] for slug, own in document["problems"].items()}
    assert len(found) >= 87  # a problem that is added since has not been measured
    assert [slug for slug in found if exceeds_roofline(found[slug], times_us[slug])] == []
    assert [slug for slug in found if found[slug].utilisation(times_us[slug]) > 1] == []


def floors_of_reference(slug: str, document: dict[str, Any]) -> RooflineBounds:
    module = problems.load(problems.find(slug))
    world_size, size = document["world_size"], module.problem.sizes[document["size"]]
    dtype, gpu = Dtype(document["dtype"]), document["gpus"][0].partition(",")[0]
    dims = module.dims(size.m, size.n, world_size)
    cost = module.cost(dims, world_size, ITEM_BYTES[dtype])
    return roofline_bounds(cost, dtype, listed(gpu), BATCH_CALLS)
