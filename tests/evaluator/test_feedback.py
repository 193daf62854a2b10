"""What a model is shown of a report: enough to mend a kernel, nothing of inputs or answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluator.messages.feedback import EVIDENCE_CHARS, LOG_CHARS, feedback
from evaluator.messages.job import Job, Placement
from evaluator.messages.profile import (
    EventKind,
    Evidence,
    Mechanism,
    RankTimeline,
    Tag,
    TimelineEvent,
)
from evaluator.messages.report import (
    Environment,
    Isolation,
    OutputCheck,
    Phase,
    RankLog,
    Report,
    Timing,
    Trial,
    Verdict,
)
from evaluator.messages.roofline_bounds import RooflineBounds

RIGHT = OutputCheck(rank=0, output="total", elements=2048, mismatched=0, max_error=0.25)
WRONG = OutputCheck(
    rank=1,
    output="total",
    elements=2048,
    mismatched=512,
    max_error=123.456789,
    verdict=Verdict.OUTPUT_MISMATCH,
)
FAILED = Report(
    verdict=Verdict.RUNTIME_ERROR,
    message="rank 1 raised RuntimeError",
    problem="allreduce",
    problem_digest="0" * 64,
    kernel_digest="1" * 64,
    isolation=Isolation.BWRAP,
    environment=Environment(hardware="a CPU", host="secret-host", versions={}),
    phase=Phase.VERIFY,
    cause="exception",
    ranks=(1,),
)


def _trial(*checks: OutputCheck) -> Trial:
    return Trial(trial=2, m=67, n=31, note="hidden shape, scale 3.7", checks=checks)


TIMING = Timing(
    kernel_us=50.0,
    baseline_us=75.0,
    speedup=1.5,
    speedup_low=1.4,
    speedup_high=1.6,
    kernel_single_us=51.0,
    baseline_single_us=76.0,
    empty_us=1.0,
    burst_calls=16,
    warmup_calls=500,
    timed_calls=100,
    kernel_bursts_us=(50.0,),
    baseline_bursts_us=(75.0,),
)


def _timeline() -> RankTimeline:
    event = TimelineEvent(
        name="ncclDevKernel \x1b[31m<b>",
        kind=EventKind.COMMUNICATION,
        start_us=0,
        duration_us=40,
        stream=7,
    )
    return RankTimeline(
        rank=0,
        device="cuda",
        origin_ns=1,
        events=(event, event),
        dropped_events=0,
        graph_launches=0,
        compute_us=10.0,
        communication_us=80.0,
        overlap_us=5.0,
        unknown_us=0.0,
        idle_us=15.0,
        span_us=100.0,
    )


def _ok() -> Report:
    return replace(
        FAILED,
        verdict=Verdict.OK,
        message="every output of every call was right",
        phase=None,
        cause=None,
        ranks=(),
        trials=(_trial(RIGHT),),
        timing=TIMING,
        floors=RooflineBounds(wire_us=25.0, hbm_us=5.0, flops_us=1.0, latency_us=2.0),
        timelines=(_timeline(),),
        mechanisms=(Mechanism(tag=Tag.NCCL, evidence=Evidence.TRACE, detail="x"),),
    )


def test_a_right_kernel_hears_its_speed_bound_and_profile() -> None:
    found = feedback(_ok())
    assert found.is_right
    assert found.is_fast
    for text in (
        "1.50x (95 % interval 1.40 to 1.60)",
        "bound: 25.0 us, by wire",
        "50 %",
        "0.25 tol",
    ):
        assert text in found.text
    assert "communication 80, both at once 5" in found.profile
    assert "80 us" in found.profile
    assert "nccl (trace)" in found.profile
    assert "\x1b" not in found.profile


def test_what_was_checked_on_one_device_hears_that_nothing_is_timed() -> None:
    job = Job(problem="allreduce", source="", placement=Placement.SHARED)
    found = feedback(replace(_ok(), timing=None, setting=job.setting))
    assert found.is_right
    assert not found.is_fast
    assert "all ranks share a device, so nothing is timed" in found.text


def test_a_wrong_kernel_hears_where_and_by_how_much() -> None:
    report = replace(
        FAILED, verdict=Verdict.OUTPUT_MISMATCH, cause="values", trials=(_trial(RIGHT, WRONG),)
    )
    found = feedback(report)
    assert "25 % of total of rank 1 (output_mismatch), up to 1.2e+02 tolerances off" in found.text
    assert "largest error: 1.2e+02 tolerances" in found.text
    assert not found.is_right
    assert "no profile" in found.profile


def test_neither_hidden_shapes_nor_seeds_nor_the_host_are_told() -> None:
    report = replace(
        FAILED,
        verdict=Verdict.OUTPUT_MISMATCH,
        message="trial 2 (hidden shape, scale 3.7): 512 of 2048 elements of total are wrong",
        trials=(_trial(WRONG),),
    )
    found = feedback(report)
    for secret in ("67", "31", "3.7", "512", "2048", "hidden", "secret-host"):
        assert secret not in found.text + found.profile


@pytest.mark.parametrize(
    ("printed", "values"),
    [
        ("RuntimeError: tensor([0.1234, -5.678, 9.1011e-05])", ("1234", "678", "1011")),
        ("ValueError: 1e-05 and .25 and 7.", ("1e-05", ".25", "7.")),
        ("KeyError: [3, 141, 59, 26, 53, 58]", ("141", "59", "26", "53")),
        ("OSError: 3 141 59 26 53 58", ("141", "59", "26", "53")),
        ("ValueError: 3f9d70a4bf8ccccd40490fdb", ("3f9d70a4", "40490fdb")),
    ],
)
def test_what_a_kernel_prints_of_its_inputs_is_masked(
    printed: str, values: tuple[str, ...]
) -> None:
    found = feedback(replace(FAILED, evidence=printed))
    assert "evidence: " in found.text
    assert not [value for value in values if value in found.text]


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: The size of tensor a (32) must match the size of tensor b (64)",
        "kernel.py:17: NameError: name 'foo' is not defined",
        "RuntimeError: shape '[2, 64, 32]' is invalid for input of size 2048",
    ],
)
def test_lengths_and_lines_of_the_source_stay(line: str) -> None:
    assert line in feedback(replace(FAILED, evidence=line)).text


def test_the_log_is_shown_only_where_no_input_was_there_yet() -> None:
    log = RankLog(rank=0, text="kernel.cu(12): error: expected a ;\x1b[0m 0.5")
    built = replace(FAILED, verdict=Verdict.BUILD_ERROR, phase=Phase.BUILD, logs=(log,))
    assert "expected a ;" in feedback(built).text
    assert "\x1b" not in feedback(built).text
    assert "expected a ;" not in feedback(replace(built, phase=Phase.VERIFY)).text


def test_what_a_kernel_says_is_short() -> None:
    long = "x" * 100_000
    logs = (RankLog(rank=0, text=long),)
    found = feedback(replace(FAILED, evidence=long, cause=long, phase=Phase.BUILD, logs=logs))
    assert len(found.text) < 3 * EVIDENCE_CHARS + LOG_CHARS
