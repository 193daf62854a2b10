"""Reports that a host which was taken over may send, and which of them are not believed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from evaluator.messages.codec import encode
from evaluator.messages.report import JUDGE_VERSION, GpuState, Verdict
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    Hardware,
    RefusedReport,
    Run,
    Status,
    WorkerHost,
)
from leaderboard.models.rejected_reports import BODY_LIMIT
from leaderboard.runs import evaluation
from leaderboard.runs.claims import Lease, LeaseLost
from tests.leaderboard import factory
from tests.leaderboard.gpu_report import make_gpu_report, make_timeline
from tests.leaderboard.running import (
    claim,
    fresh,
    report_of,
    worker_token,
)

Told = dict[str, Any]
Change = Callable[[Told], object]


def _refused(run: Run, lease: Lease, report: object) -> RequestError:
    with pytest.raises(RequestError) as refused:
        evaluation.finish(run.pk, lease.holding, report)
    assert not isinstance(refused.value, LeaseLost)
    return refused.value


def _timing(**values: Any) -> Change:
    return lambda told: told["timing"].update(values)


def _scaled(told: Told, factor: float) -> None:
    """Of the kernel's times; all that is told of them still agrees."""
    timing = told["timing"]
    timing["kernel_us"] *= factor
    timing["empty_us"] *= min(1.0, factor)
    timing["kernel"] = {name: us * factor for name, us in timing["kernel"].items()}
    timing["kernel_bursts_us"] = [us * factor for us in timing["kernel_bursts_us"]]
    for name in ("speedup", "speedup_low", "speedup_high"):
        timing[name] /= factor


def _side(**values: Any) -> Change:
    return lambda told: told["timing"]["kernel"].update(values)


def _as_fast(told: Told) -> None:
    """As the reference but for a tenth of what the clock resolves, and surely faster."""
    ratio = 1.0 + 0.1 * told["timing"]["resolution_us"] / 100.0
    _scaled(told, 1.3 / ratio)
    told["timing"].update(speedup=ratio, speedup_low=ratio)


def _first_check(told: Told, rank: int) -> None:
    told["trials"][0]["checks"][0]["rank"] = rank


GPU = GpuState(name="2 x CPU", sm_mhz=1, memory_mhz=1, temperature_c=1, power_w=1.0)
MISFITS: dict[str, tuple[str, Change]] = {
    "digest": ("wrong_subject", lambda told: told.update(problem_digest="0" * 64)),
    "kernel": ("wrong_subject", lambda told: told.update(kernel_digest="0" * 64)),
    "world size": ("wrong_setting", lambda told: told["setting"].update(world_size=4)),
    "size": ("wrong_setting", lambda told: told["setting"].update(size="large")),
    "dtype": ("wrong_setting", lambda told: told["setting"].update(dtype="bfloat16")),
    "profile": ("wrong_setting", lambda told: told["setting"].update(profile="upstream")),
    "device": ("wrong_setting", lambda told: told["setting"].update(device="cuda")),
    "no setting": ("wrong_setting", lambda told: told.update(setting=None)),
    "shape": ("wrong_size", lambda told: [trial.update(m=9) for trial in told["trials"]]),
    "one trial": ("wrong_trials", lambda told: told.update(trials=told["trials"][:1])),
    "one trial six times": (
        "wrong_trials",
        lambda told: told.update(trials=told["trials"][:1] * 6),
    ),
    "one rank": ("wrong_trials", lambda told: [trial["checks"].pop() for trial in told["trials"]]),
    "swapped ranks": ("wrong_trials", lambda told: _first_check(told, 1)),
    "check of rank 9": ("wrong_ranks", lambda told: _first_check(told, 9)),
    "verdict of rank -1": ("wrong_ranks", lambda told: told.update(ranks=[-1])),
    "log of rank 9": ("wrong_ranks", lambda told: told["logs"][0].update(rank=9)),
    "two logs": ("wrong_ranks", lambda told: told["logs"][0].update(rank=1)),
    "timeline of rank 9": (
        "wrong_ranks",
        lambda told: told.update(timelines=[encode(make_timeline(9))]),
    ),
    "two timelines": (
        "wrong_ranks",
        lambda told: told.update(timelines=[encode(make_timeline(0))] * 2),
    ),
    "times of nine ranks": ("wrong_ranks", _timing(rank_us=[90.0] * 9)),
    "nine ranks that are last": ("wrong_ranks", _timing(rank_last=[1] * 9)),
    "last less than never": ("wrong_ranks", _timing(rank_last=[-1] * 4)),
    "host": ("wrong_origin", lambda told: told["environment"].update(host="other")),
    "processor": ("wrong_origin", lambda told: told["environment"].update(hardware="2 x Fast")),
    "judge": ("wrong_origin", lambda told: told.update(judge_version="99")),
    "isolation": ("wrong_origin", lambda told: told.update(isolation="vm")),
    "GPUs": (
        "wrong_hardware",
        lambda told: told.update(gpus=[encode(GPU)] * 2),
    ),
    "long log": ("wrong_length", lambda told: told["logs"][0].update(text="x" * 300_000)),
    "14 MB of logs": ("bad_report", lambda told: told["logs"][0].update(text="x" * (14 << 20))),
    "long message": ("wrong_length", lambda told: told.update(message="x" * 30_000)),
    "flags": ("wrong_length", lambda told: told.update(flags=["flag"] * 2000)),
    "1e-308 us": ("impossible_times", lambda told: _scaled(told, 1e-308)),
    "1e-310 us": ("bad_report", lambda told: _scaled(told, 1e-312)),
    "a tenth of an operator": ("impossible_times", lambda told: _scaled(told, 1e-3)),
    "an hour a call": ("impossible_times", lambda told: _scaled(told, 3.6e7)),
    "NaN": ("bad_report", _timing(empty_us=math.nan)),
    "NaN far down": (
        "bad_report",
        lambda told: told["trials"][0]["checks"][0].update(max_error=math.nan),
    ),
    "infinite": ("bad_report", _timing(kernel_events_us=math.inf)),
    "speedup": ("impossible_times", _timing(speedup=1.31)),
    "interval": ("bad_report", _timing(speedup_low=1.4)),
    "median": ("impossible_times", _timing(kernel_bursts_us=[50.0] * 8)),
    "baseline's median": ("impossible_times", _timing(baseline_bursts_us=[150.0] * 8)),
    "calls": ("impossible_times", _timing(timed_calls=100_000)),
    "no calls": ("impossible_times", _timing(timed_calls=0, burst_calls=0)),
    "batches": ("impossible_times", _timing(timed_calls=128, burst_calls=16)),
    "single calls": ("impossible_times", _timing(kernel_single_us=90.0)),
    "negative empty call": ("impossible_times", _timing(empty_us=-1.0)),
    "an empty call of an hour": ("impossible_times", _timing(empty_us=3.6e9)),
    "no resolution": ("impossible_times", _timing(resolution_us=None)),
    "negative resolution": ("impossible_times", _timing(resolution_us=-0.1)),
    "a resolution of an hour": ("impossible_times", _timing(resolution_us=3.6e9)),
    "surer than the clock": ("impossible_times", _as_fast),
    "one side's three times": ("impossible_times", _timing(baseline=None)),
    "another time to answer": ("impossible_times", _side(answer_us=50.0)),
    "negative call time": ("impossible_times", _side(call_us=-1.0)),
    "no time back to back": ("impossible_times", _side(series_us=0.0)),
    "no reference before": ("impossible_times", _timing(before_us=None)),
    "negative reference": ("impossible_times", _timing(before_us=-1.0)),
    "no time after": ("impossible_times", _timing(after_us=0.0)),
    "more than all ahead": ("impossible_times", _timing(ahead=1.01)),
    "fewer than none ahead": ("impossible_times", _timing(ahead=-0.01)),
    "empty calls beyond the phase": (
        "impossible_times",
        # The kernel's own 8 calls are 0.6 ms of the second, and what was taken off 1.2 s.
        lambda told: (told["phase_s"].update(timed=1.0), told["timing"].update(empty_us=1.5e5)),
    ),
    "a reference beyond the run": (
        "impossible_times",
        lambda told: told["phase_s"].update(build=0.0, verify=0.0, timed=0.0007),
    ),
    "a phase too short": ("impossible_times", lambda told: told["phase_s"].update(timed=0.0005)),
    "no phase": ("impossible_times", lambda told: told.update(phase_s={})),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_report_that_does_not_fit_is_kept_for_staff_and_the_run_tried_again(
    run: Run, name: str
) -> None:
    code, change = MISFITS[name]
    lease = claim(run)
    told = report_of(run)
    change(told)
    error = _refused(run, lease, told)
    assert error.code == code, error.message
    found = fresh(run)
    assert (found.status, found.verdict, found.tries) == (Status.QUEUED, None, 1)
    assert found.last_error == f"host-1 sent a report that was refused: {error.message}"
    kept = RefusedReport.objects.get()
    assert (kept.run_id, kept.host, kept.token) == (run.pk, "host-1", worker_token())
    assert (kept.code, kept.reason) == (error.code, error.message)
    assert 0 < len(kept.body) <= BODY_LIMIT
    with pytest.raises(LeaseLost):
        evaluation.finish(run.pk, lease.holding, report_of(run))
    honest = claim(run)
    evaluation.finish(run.pk, honest.holding, report_of(run))
    assert fresh(run).verdict == Verdict.OK


def test_a_host_that_goes_on_lying_does_not_keep_a_run_for_ever(run: Run) -> None:
    for _ in range(3):
        lease = claim(run)
        _refused(run, lease, {**report_of(run), "problem_digest": "0" * 64})
    assert (fresh(run).status, fresh(run).verdict) == (Status.FAILED, Verdict.INFRA_ERROR)
    assert RefusedReport.objects.count() == 3


@pytest.fixture
def gpu_run(run: Run) -> Run:
    """Queued for four H200s, of a size that is large enough to have bounds."""
    payload = run.kernel.problem.payload
    cost = {"wire_bytes": 9e8, "flops": 4e12, "hbm_bytes": 9e9, "exchanges": 2}
    payload["costs"] = {"standard": {"4": cost}}
    run.kernel.problem.save()
    hardware = Hardware.objects.create(
        slug="h200x4", title="4 x NVIDIA H200", device="cuda", max_world_size=4
    )
    setting = {"world_size": 4, "device": "cuda", "dtype": "bfloat16", "size": "standard"}
    Run.objects.update(hardware=hardware, **setting)
    WorkerHost.objects.create(
        host="gpu-host-1",
        queue="h200x4",
        token=worker_token(),
        **{"hardware": "4 x NVIDIA H200", "isolation": "bwrap", "judge_version": JUDGE_VERSION},
        last_seen_at=run.created_at,
    )
    return fresh(run)


def _gpu_report(run: Run, *, slower: float = 50.0) -> Told:
    """Of a kernel that takes 2.3 ms, where the hardware needs 2 ms."""
    trials = tuple(
        replace(factory.make_trial(number, True, 4), m=1024, n=1024) for number in range(6)
    )
    told: Told = encode(make_gpu_report(run, trials=trials, floors=None, speedup=1.0))
    _scaled(told, slower * 0.46)
    return dict(told)


BOUNDS = {
    "wire_us": 2000.0,
    "hbm_us": (9e9 - 60 * 2**20) / 4.8e6,
    "flops_us": 4042.45,
    "latency_us": 1.8,
}
GPU_MISFITS: dict[str, tuple[str, Change]] = {
    "faster than light": ("impossible_times", lambda told: _scaled(told, 0.5)),
    "bounds of another size": (
        "impossible_times",
        lambda told: told.update(floors={**BOUNDS, "wire_us": 20.0}),
    ),
    "two GPUs": ("wrong_hardware", lambda told: told.update(gpus=told["gpus"][:2])),
    "no GPUs": ("wrong_hardware", lambda told: told.update(gpus=[])),
    "another GPU": ("wrong_hardware", lambda told: told["gpus"][3].update(name="NVIDIA B200")),
    "another class": (
        "wrong_hardware",
        lambda told: (
            told["environment"].update(hardware="4 x NVIDIA B200"),
            [gpu.update(name="NVIDIA B200") for gpu in told["gpus"]],
        ),
    ),
}


@pytest.mark.parametrize("name", GPU_MISFITS)
def test_what_no_gpu_of_the_class_can_have_measured_is_refused(gpu_run: Run, name: str) -> None:
    code, change = GPU_MISFITS[name]
    lease = claim(gpu_run, "gpu-host-1")
    told = _gpu_report(gpu_run)
    change(told)
    assert _refused(gpu_run, lease, told).code == code
    assert fresh(gpu_run).status == Status.QUEUED


@pytest.mark.parametrize("share", [1.0, 0.75])
def test_what_a_gpu_can_have_measured_is_stored(gpu_run: Run, share: float) -> None:
    """Where options of timed calls ask for less than all of the work, bounds are of that."""
    problem = gpu_run.kernel.problem
    problem.payload["work_share"] = share
    problem.save()
    bounds = {**BOUNDS, "wire_us": 2000.0 * share, "flops_us": 4e12 / 989.5e6 * share}
    bounds["hbm_us"] = (share * 9e9 - 60 * 2**20) / 4.8e6
    lease = claim(gpu_run, "gpu-host-1")
    evaluation.finish(gpu_run.pk, lease.holding, {**_gpu_report(gpu_run), "floors": bounds})
    assert fresh(gpu_run).verdict == Verdict.OK


def test_a_kernel_that_fooled_the_clock_keeps_its_verdict(gpu_run: Run) -> None:
    """What a submission does must never be refused: it would count for nothing."""
    lease = claim(gpu_run, "gpu-host-1")
    told = _gpu_report(gpu_run)
    _scaled(told, 1e-5)
    told["verdict"] = Verdict.FASTER_THAN_LIGHT.value
    evaluation.finish(gpu_run.pk, lease.holding, told)
    assert fresh(gpu_run).verdict == Verdict.FASTER_THAN_LIGHT


def test_what_is_refused_is_shown_to_staff(run: Run, client: Client) -> None:
    lease = claim(run)
    _refused(run, lease, {**report_of(run), "problem_digest": "0" * 64})
    client.force_login(User.objects.create_superuser("root"))
    shown = client.get("/admin/leaderboard/refusedreport/").content.decode()
    assert "wrong_subject" in shown
    assert "host-1" in shown
    page = f"/admin/leaderboard/refusedreport/{RefusedReport.objects.get().pk}/change/"
    assert "problem_digest" in client.get(page).content.decode()
