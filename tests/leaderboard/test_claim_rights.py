"""What the token of a worker is good for, and what it cannot get at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from evaluator.messages.codec import encode
from evaluator.messages.report import JUDGE_VERSION
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    ApiToken,
    AuditEntry,
    Hardware,
    RefusedReport,
    Run,
    Scope,
    Status,
    Submission,
    WorkerHost,
)
from leaderboard.runs import claims, evaluation
from leaderboard.runs.claims import Holding, Lease, LeaseLost
from leaderboard.submissions import moderation
from tests.leaderboard import factory
from tests.leaderboard.running import (
    HELLO,
    PROGRESS,
    claim,
    claimant,
    fresh,
    report_of,
    say_hello,
    worker_token,
)

Told = dict[str, Any]


@pytest.mark.parametrize("call", ["heartbeat", "finish", "misfit", "fail"])
def test_a_second_token_can_do_nothing_with_a_lease_that_leaked(run: Run, call: str) -> None:
    lease = claim(run)
    other = claimant(run, "host-2", "second").token
    stolen = Holding(lease_token=lease.holding.lease_token, token_id=other.pk)
    report = report_of(run)
    calls: dict[str, tuple[Callable[..., object], object]] = {
        "heartbeat": (evaluation.heartbeat, PROGRESS),
        "finish": (evaluation.finish, report),
        "misfit": (evaluation.finish, {**report, "problem_digest": "0" * 64}),
        "fail": (evaluation.fail, "driver hung"),
    }
    make, body = calls[call]
    with pytest.raises(LeaseLost):
        make(run.pk, stolen, body)
    found = fresh(run)
    assert (found.status, found.host, found.token) == (Status.RUNNING, "host-1", _token_of(lease))
    assert not RefusedReport.objects.exists()
    evaluation.finish(run.pk, lease.holding, report_of(run))
    assert fresh(run).token == _token_of(lease)


def _token_of(lease: Lease) -> ApiToken:
    return ApiToken.objects.get(pk=lease.holding.token_id)


def test_tokens_of_a_request_are_those_that_count(run: Run, api: Any) -> None:
    holder, thief = api(scope=Scope.WORKER), api(scope=Scope.WORKER)
    hello = {**encode(HELLO), "host": "host-1"}
    base = f"/api/v1/worker/runs/{run.pk}"
    who = {"host": "host-1", "isolation": "bwrap", "judge_version": JUDGE_VERSION}
    assert _code(holder.post(f"{base}/claim", who, format="json")) == "may_not_claim"
    assert _code(holder.post("/api/v1/worker/hello", hello, format="json")) is None
    assert _code(thief.post("/api/v1/worker/hello", hello, format="json")) == "may_not_serve"
    assert _code(thief.post(f"{base}/claim", who, format="json")) == "may_not_claim"
    lease = holder.post(f"{base}/claim", who, format="json").json()["lease_token"]
    bodies = {"heartbeat": PROGRESS, "finish": report_of(run), "fail": "x"}
    names = {"heartbeat": "progress", "finish": "report", "fail": "error"}
    for call, body in bodies.items():
        stolen = {"lease_token": lease, names[call]: body}
        assert _code(thief.post(f"{base}/{call}", stolen, format="json")) == "fenced"
    own = {"lease_token": lease, "report": report_of(run)}
    assert _code(holder.post(f"{base}/finish", own, format="json")) is None


def _code(answer: Any) -> str | None:
    error: Told = answer.json().get("error", {})
    return error.get("code")


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("hello", {**encode(HELLO), "versions": {str(n): "x" * 200 for n in range(400)}}),
        ("fail", {"lease_token": "x", "error": "x" * 100_000}),
    ],
)
def test_only_a_report_may_be_long(run: Run, worker: APIClient, call: str, body: Told) -> None:
    path = call if call == "hello" else f"runs/{run.pk}/{call}"
    answer = worker.post(f"/api/v1/worker/{path}", body, format="json")
    assert (answer.status_code, _code(answer)) == (413, "too_large")


@pytest.mark.parametrize(
    ("bound", "is_let_in"),
    [
        ({"queues": ["cpu"], "hosts": ["h", "host-1"]}, True),
        ({"queues": ["cpu", "h200x4"]}, True),
        ({"hosts": ["host-1"]}, True),
        ({"queues": ["h200x4"]}, False),
        ({"hosts": ["host-2"]}, False),
        ({"queues": ["cpu"], "hosts": ["host-2"]}, False),
    ],
)
def test_a_token_is_good_for_its_queues_and_hosts(run: Run, bound: Told, is_let_in: bool) -> None:
    by = claimant(run)
    token, _ = ApiToken.objects.issue(scope=Scope.WORKER, name="bound", good_for=bound)
    WorkerHost.objects.update(token=token)
    if is_let_in:
        assert claims.lease(run.pk, replace(by, token=token)).tries == 1
        return
    with pytest.raises(RequestError, match="The token is not for cpu on host-1"):
        claims.lease(run.pk, replace(by, token=token))
    with pytest.raises(RequestError, match="The token is not for cpu on host-1"):
        say_hello(replace(HELLO, host="host-1"), "bound")
    assert fresh(run).tries == 0


def test_a_host_of_another_class_may_not_claim(run: Run) -> None:
    hardware = Hardware.objects.create(
        slug="h200x4", title="4 x NVIDIA H200", device="cuda", max_world_size=4
    )
    Run.objects.update(hardware=hardware)
    say_hello(replace(HELLO, host="host-1"))
    by = claimant(factory.make_run(run.kernel))
    assert by.host == "host-1"
    with pytest.raises(RequestError, match="host-1 has not said hello with this token for h200x4"):
        claims.lease(run.pk, by)


@pytest.mark.parametrize("change", [{"isolation": "vm"}, {"judge_version": "99"}])
def test_a_claim_must_say_what_the_hello_said(run: Run, change: Told) -> None:
    (name,) = change
    with pytest.raises(RequestError, match=f"{name} is .* now and was .* at hello"):
        claims.lease(run.pk, replace(claimant(run), **change))
    assert fresh(run).status == Status.QUEUED


@pytest.mark.parametrize(
    ("queue", "hardware", "fits"),
    [
        ("h200x4", "4 x NVIDIA H200", True),
        ("h200x4", "8 x NVIDIA H200", True),
        ("h200-nvlx2", "2 x NVIDIA H200 NVL", True),
        ("mi300x8", "8 x AMD Instinct MI300X", True),
        ("h200x4", "2 x NVIDIA H200", False),
        ("h200x4", "4 x NVIDIA H100 80GB HBM3", False),
        ("h200x4", "NVIDIA H200", False),
        ("cpu-arm", "64 x Neoverse", True),
    ],
)
def test_a_host_serves_the_class_of_its_hardware(
    db: None, queue: str, hardware: str, fits: bool
) -> None:
    hello = replace(HELLO, queue=queue, hardware=hardware)
    if fits:
        say_hello(hello)
    else:
        with pytest.raises(RequestError, match=f"is not {queue}"):
            say_hello(hello)
    assert WorkerHost.objects.exists() is fits


def test_a_host_that_is_silent_may_come_back_with_another_token(run: Run) -> None:
    claimant(run, "h")
    say_hello(HELLO, "new")
    assert WorkerHost.objects.get().token == worker_token("new")
    with pytest.raises(RequestError, match="alive with another token"):
        say_hello(HELLO)


def test_all_that_a_token_judged_can_be_invalidated(run: Run, problem: Any, client: Client) -> None:
    other = factory.make_judged(factory.make_submission("Other"), problem).kernel.submission
    evaluation.finish(run.pk, claim(run).holding, report_of(run))
    client.force_login(User.objects.create_superuser("root"))
    chosen = {"action": "invalidate", "_selected_action": [worker_token().pk]}
    assert client.post("/admin/leaderboard/apitoken/", chosen).status_code == 302
    states = dict(Submission.objects.values_list("pk", "moderation"))
    assert states == {run.kernel.submission_id: "invalidated", other.pk: "accepted"}
    assert Submission.objects.get(pk=run.kernel.submission_id).moderation_reason == (
        moderation.NOT_TRUSTED
    )
    assert AuditEntry.objects.get().action == "moderate"
