"""A run whose ranks share a device finds a host that can take it, and a report that fits it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from evaluator.messages.codec import encode
from evaluator.messages.job import Placement
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    ApiToken,
    Hardware,
    Problem,
    RefusedReport,
    Run,
    Scope,
    Submission,
    Trust,
)
from leaderboard.models.abilities import waiting_for
from leaderboard.runs import evaluation, hosts, reports
from leaderboard.submissions.queue import Target, enqueue
from tests.leaderboard import factory
from tests.leaderboard.running import HELLO, claim, fresh, report_of, say_hello
from tests.leaderboard.uploads import ONE, URL

pytestmark = [pytest.mark.django_db, pytest.mark.server]
SHARED: dict[str, Any] = {"placement": "shared"}
ONE_GPU = replace(
    HELLO, queue="h200x1", hardware="1 x NVIDIA H200", abilities=["nccl", "nvcc", "triton"]
)


def test_a_submission_asks_for_it(client: Client, problem: Problem) -> None:
    hosts.register("h200x1", "1 x NVIDIA H200")
    owner = factory.make_user()
    client.force_login(owner)
    target = {"device": "cuda", "world_size": 4, "size": "tiny", "dtype": "float32"}
    token = _token(owner)
    send = {**ONE, **target, **SHARED, "problem": problem.slug}
    answer = client.post(URL, json.dumps(send), content_type="application/json", headers=token)
    assert answer.status_code == 201, answer.text
    run = Run.objects.get()
    assert (run.placement, run.hardware_id, run.world_size) == ("shared", "h200x1", 4)
    assert run.needed <= {"nvcc", "triton"}
    told = client.get(f"/api/v1/runs/{run.pk}").json()
    assert told["placement"] == "shared"
    for placement, count in (("shared", 1), ("full", 0)):
        listed = client.get(f"/api/v1/runs?placement={placement}").json()
        assert len(listed["results"] if isinstance(listed, dict) else listed) == count
    refused = client.post(
        URL,
        json.dumps({**send, "placement": "full"}),
        content_type="application/json",
        headers=token,
    )
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "no_hardware"


def _token(owner: User) -> dict[str, str]:
    _, text = ApiToken.objects.issue(scope=Scope.SUBMIT, name="t", owner=owner)
    return {"Authorization": f"Bearer {text}"}


def _queued(problem: Problem, source: str, hardware: str = "h200x1") -> Run:
    kernel = factory.make_kernel(factory.make_submission(), problem, source=source)
    target = Target(
        hardware=hardware,
        device="cuda",
        world_size=4,
        size="standard",
        dtype="bfloat16",
        profile="hardened",
        placement="shared",
    )
    (run,) = enqueue([(kernel, target)])
    return run


def test_a_host_with_one_gpu_takes_it(problem: Problem) -> None:
    say_hello(ONE_GPU)
    run = _queued(problem, "dist.all_reduce(x)")
    assert waiting_for([run]) == {}
    lease = claim(run, "h")
    assert (lease.job.placement, lease.job.world_size) == (Placement.SHARED, 4)


@pytest.mark.parametrize("queue", ["h200x1", "h200x4"])
def test_what_lies_between_gpus_waits_for_another_placement(queue: str, problem: Problem) -> None:
    """Whatever the host could do for ranks with GPUs of their own, told or not."""
    gpus = f"{queue[-1]} x NVIDIA H200"
    say_hello(replace(ONE_GPU, queue=queue, hardware=gpus, abilities=["nccl", "multicast"]))
    run = _queued(problem, "fast(hdl.multicast_ptr)", queue)
    assert "NVLink multicast" in waiting_for([run])[run.pk]
    assert "ranks that share a device" in waiting_for([run])[run.pk]
    with pytest.raises(RequestError, match="finished or belongs"):
        claim(run, "h")
    assert Run.objects.fit_for(None).count() == 0


def test_a_report_is_stored_and_backs_its_submission(problem: Problem) -> None:
    submission = factory.make_submission()
    Submission.objects.update(trust=Trust.SELF_REPORTED)
    run = factory.make_run(factory.make_kernel(submission, problem), **SHARED)
    evaluation.finish(run.pk, claim(run).holding, report_of(run))
    assert (fresh(run).verdict, fresh(run).speedup) == ("ok", None)
    assert Submission.objects.get().trust == Trust.CHECKED
    full = factory.make_run(run.kernel)
    evaluation.finish(full.pk, claim(full).holding, report_of(full))
    assert Submission.objects.get().trust == Trust.VERIFIED
    again = factory.make_run(run.kernel, **SHARED)
    evaluation.finish(again.pk, claim(again).holding, report_of(again))
    assert Submission.objects.get().trust == Trust.VERIFIED


@pytest.mark.parametrize("placement", ["full", "shared"])
def test_a_report_of_the_other_placement_is_not_believed(placement: str, problem: Problem) -> None:
    kernel = factory.make_kernel(factory.make_submission(), problem)
    run = factory.make_run(kernel, placement=placement)
    other = factory.make_run(kernel, placement=({"full", "shared"} - {placement}).pop())
    holding = claim(run).holding
    report = {**report_of(other), "environment": report_of(run)["environment"]}
    with pytest.raises(RequestError, match="tells of another"):
        evaluation.finish(run.pk, holding, report)
    assert RefusedReport.objects.count() == 1


def test_a_report_without_setting_is_of_devices_of_their_own(problem: Problem) -> None:
    kernel = factory.make_kernel(factory.make_submission(), problem)
    run = factory.make_run(kernel, **SHARED)
    full = dict(encode(factory.make_report(factory.make_run(kernel), setting=None)))
    with pytest.raises(RequestError, match="tells of another"):
        evaluation.finish(run.pk, claim(run).holding, full)


def test_reports_from_elsewhere_bring_it_along(problem: Problem, tmp_path: Path) -> None:
    run = factory.make_run(factory.make_kernel(factory.make_submission(), problem), **SHARED)
    line = {
        **{"model": "M", "vendor": "V", "harness": "human", "baseline": False, "k": 1, "notes": ""},
        **{"problem": problem.slug, "attempt": 1, "step": 1, "backend": "pytorch"},
        **{"source": factory.SOURCE, "judged_at": "2026-11-01T00:00:00+00:00"},
        "job": {"hardware": "cpu", **factory.SETTING, **SHARED},
        "report": encode(factory.make_report(run)),
    }
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps(line) + "\n")
    call_command("import_reports", str(path))
    stored = Run.objects.exclude(pk=run.pk).get()
    assert (stored.placement, stored.verdict, stored.is_timed) == ("shared", "ok", False)
    assert stored.kernel.submission.trust == Trust.CHECKED


def test_a_class_of_one_gpu_can_be_registered() -> None:
    hosts.register("h100x1", "1 x NVIDIA H100")
    assert Hardware.objects.get(slug="h100x1").max_world_size == 1
    with pytest.raises(RequestError, match="does not name a class"):
        hosts.register("h100x0", "0 x NVIDIA H100")


def test_a_report_that_is_too_long_is_refused_before_it_is_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MAX_REPORT_BYTES", 1000)
    monkeypatch.setattr(evaluation, "decoded", None)
    with pytest.raises(RequestError, match="longer than 1000 bytes"):
        evaluation.finish(run.id, claim(run).holding, report_of(run))
    assert RefusedReport.objects.get().code == "bad_report"
