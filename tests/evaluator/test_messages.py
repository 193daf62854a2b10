"""Jobs and reports: what cannot be built, and what cannot be decoded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from evaluator import Job, Report, Timing, Trial, Verdict
from evaluator.messages.codec import DecodeError, decode, encode
from evaluator.messages.job import Placement
from evaluator.messages.report import (
    ELEMENTS_AN_OUTLIER,
    OUTLIER_LIMIT,
    Environment,
    Isolation,
    OutputCheck,
    Phase,
    RankLog,
)
from problems import spec

TIMING = Timing(
    kernel_us=50.0,
    baseline_us=100.0,
    speedup=2.0,
    speedup_low=1.9,
    speedup_high=2.1,
    kernel_single_us=60.0,
    baseline_single_us=110.0,
    empty_us=20.0,
    burst_calls=16,
    warmup_calls=512,
    timed_calls=112,
    kernel_bursts_us=(50.0, 51.0),
    baseline_bursts_us=(100.0, 99.0),
)
CHECK = OutputCheck(rank=0, output="out", elements=4, mismatched=0, max_error=0.5)
REPORT = Report(
    verdict=Verdict.OK,
    message="right",
    problem="allreduce",
    problem_digest="p",
    kernel_digest="k",
    isolation=Isolation.BWRAP,
    environment=Environment(hardware="cpu", host="h", versions={"torch": "2"}),
    trials=(Trial(trial=0, m=4, n=4, note="n", checks=(CHECK,)),),
    timing=TIMING,
    logs=(RankLog(rank=0, text="hello"),),
    phase_s={Phase.BUILD: 1.0},
)


def test_a_report_survives_json() -> None:
    assert decode(Report, json.loads(json.dumps(encode(REPORT)))) == REPORT


def test_a_shared_run_is_right_without_a_timing_and_never_has_one() -> None:
    job = Job(problem="allreduce", source="x", placement=Placement.SHARED)
    shared = replace(REPORT, setting=job.setting, timing=None)
    assert shared.placement is Placement.SHARED
    assert decode(Report, json.loads(json.dumps(encode(shared)))) == shared
    with pytest.raises(ValueError, match="not of shared ones"):
        replace(shared, timing=TIMING)


def test_what_was_judged_before_placements_had_gpus_for_all_ranks() -> None:
    job = Job(problem="allreduce", source="x")
    asked: dict[str, Any] = encode(job)
    message: dict[str, Any] = encode(replace(REPORT, setting=job.setting))
    del asked["placement"], message["setting"]["placement"]
    assert decode(Job, asked).placement is Placement.FULL
    assert decode(Report, message).placement is Placement.FULL
    assert REPORT.placement is Placement.FULL  # and has no setting


def test_a_report_from_before_the_first_release_names_none() -> None:
    message: dict[str, Any] = encode(REPORT)
    del message["software_version"]
    assert decode(Report, message).software_version is None


def test_a_job_survives_json_and_knows_its_kernel() -> None:
    job = Job(problem="allreduce", source="def solution(x): return x")
    again = decode(Job, json.loads(json.dumps(encode(job))))
    assert again == job
    assert again.kernel_digest == job.kernel_digest
    assert len(job.kernel_digest) == 64


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("verdict", "perfect", "verdict"),
        ("message", None, "message must be str"),
        ("timing", [1, 2], "timing must be an object"),
        ("ranks", ["0"], r"ranks\[0\] must be int"),
        ("phase_s", [1.0], "phase_s must be an object"),
        ("surprise", 1, "unknown fields: surprise"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object, complaint: str) -> None:
    message: dict[str, Any] = encode(REPORT)
    message[field] = value
    with pytest.raises(DecodeError, match=complaint):
        decode(Report, message)


def test_a_missing_field_is_named() -> None:
    message: dict[str, Any] = encode(REPORT)
    del message["verdict"]
    with pytest.raises(DecodeError, match="lacks fields: verdict"):
        decode(Report, message)


def test_true_is_not_a_number() -> None:
    message = encode(Job(problem="allreduce", source="x"))
    message["world_size"] = True
    with pytest.raises(DecodeError, match="world_size must be int"):
        decode(Job, message)


@pytest.mark.parametrize(
    "change",
    [
        {"timing": None},
        {"trials": ()},
        {"message": ""},
        {"verdict": Verdict.OUTPUT_MISMATCH},
        {"verdict": Verdict.TIMEOUT},
    ],
)
def test_a_report_that_makes_no_sense_cannot_be_built(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="report"):
        replace(REPORT, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"kernel_us": 0.0},
        {"speedup": 3.0},
        {"speedup_low": 0.0},
        {"kernel_bursts_us": ()},
    ],
)
def test_a_timing_that_makes_no_sense_cannot_be_built(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"time|interval|samples"):
        replace(TIMING, **change)


@pytest.mark.parametrize(
    ("changes", "is_possible"),
    [
        ({"max_error": 1.0}, True),
        ({"max_error": 1.01}, False),
        ({"max_error": 1.01, "verdict": Verdict.OUTPUT_MISMATCH}, True),
        ({"max_error": 2.0, "elements": ELEMENTS_AN_OUTLIER}, True),
        ({"max_error": 2.1, "elements": ELEMENTS_AN_OUTLIER}, False),
        ({"rms_error": 0.1, "rms_limit": 0.1}, True),
        ({"rms_error": 0.11, "rms_limit": 0.1}, False),
    ],
)
def test_a_check_beyond_its_limits_cannot_be_ok(changes: dict[str, Any], is_possible: bool) -> None:
    if is_possible:
        replace(CHECK, **changes)
        return
    with pytest.raises(ValueError, match="cannot be ok"):
        replace(CHECK, **changes)


def test_a_report_allows_outliers_as_the_comparison_does() -> None:
    assert (ELEMENTS_AN_OUTLIER, OUTLIER_LIMIT) == (spec.ELEMENTS_AN_OUTLIER, spec.OUTLIER_LIMIT)


def test_a_check_with_mismatches_cannot_be_ok() -> None:
    with pytest.raises(ValueError, match="cannot be ok"):
        replace(CHECK, mismatched=1)
    with pytest.raises(ValueError, match="mismatched must lie"):
        replace(CHECK, mismatched=9, verdict=Verdict.OUTPUT_MISMATCH)


def test_a_check_of_an_older_report_has_no_root_mean_square() -> None:
    told = encode(replace(CHECK, rms_error=0.25, rms_limit=0.5))
    assert decode(OutputCheck, told) == replace(CHECK, rms_error=0.25, rms_limit=0.5)
    older = {name: value for name, value in told.items() if not name.startswith("rms")}
    assert decode(OutputCheck, older) == CHECK


@pytest.mark.parametrize("change", [{"world_size": 1}, {"trials": 0}, {"problem": ""}])
def test_a_job_that_makes_no_sense_cannot_be_built(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"world_size|trials|problem"):
        replace(Job(problem="allreduce", source="x"), **change)


def test_only_faults_that_are_not_the_kernels_do_not_count() -> None:
    spared = {verdict for verdict in Verdict if not verdict.counts}
    assert spared == {Verdict.HOST_UNSUPPORTED, Verdict.INFRA_ERROR, Verdict.CANCELLED}


def test_isolation_levels_are_ordered() -> None:
    assert Isolation.VM.at_least(Isolation.BWRAP_CGROUP_SECCOMP)
    assert not Isolation.NONE.at_least(Isolation.BWRAP)
