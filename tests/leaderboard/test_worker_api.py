"""The calls of a judging host."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from evaluator import Verdict
from evaluator.messages.codec import encode
from evaluator.messages.report import JUDGE_VERSION, Phase, Progress
from leaderboard.api.access import SubmitThrottle
from leaderboard.models import (
    Run,
    WorkerHost,
)
from tests.leaderboard.running import NO_TRITON, report_of

pytestmark = pytest.mark.server

HELLO = {
    **{"host": "h", "hardware": "2 x CPU", "queue": "cpu", "isolation": "bwrap"},
    **{"versions": {"torch": "2.13.0"}, "judge_version": JUDGE_VERSION},
}


def test_a_worker_is_never_throttled(run: Run, worker: APIClient, monkeypatch: Any) -> None:
    monkeypatch.setattr(SubmitThrottle, "rate", "1/min", raising=False)
    for _ in range(3):
        assert worker.post("/api/v1/worker/hello", HELLO, format="json").status_code == 200


def test_a_worker_leads_a_run_from_claim_to_result(run: Run, worker: APIClient) -> None:
    base = f"/api/v1/worker/runs/{run.id}"
    answer = worker.post("/api/v1/worker/hello", HELLO, format="json").json()
    assert answer == {"heartbeat_s": 15, "poll_s": 10, "state": "serving"}
    who = {"host": "h", "isolation": "bwrap", "judge_version": JUDGE_VERSION}
    lease = worker.post(f"{base}/claim", who, format="json").json()
    assert (lease["attempt"], lease["heartbeat_s"]) == (1, 15)
    assert lease["job"]["problem"] == "allreduce"
    assert worker.post(f"{base}/claim", who, format="json").status_code == 409
    token = {"lease_token": lease["lease_token"]}
    progress = encode(Progress(phase=Phase.TIMED, done=1, total=9))
    beat = {**token, "progress": progress}
    assert worker.post(f"{base}/heartbeat", beat, format="json").json() == {"cancel": False}
    wrong = {**beat, "lease_token": "x"}
    assert worker.post(f"{base}/heartbeat", wrong, format="json").status_code == 409
    body = {**token, "report": report_of(run, Verdict.TIMEOUT)}
    for status in (200, 409):
        assert worker.post(f"{base}/finish", body, format="json").status_code == status
    assert worker.post(f"{base}/fail", {**token, "error": "x"}, format="json").status_code == 409
    assert Run.objects.get().verdict == "timeout"


def test_a_host_that_declines_a_run_does_not_get_it_again(run: Run, worker: APIClient) -> None:
    base = f"/api/v1/worker/runs/{run.id}"
    who = {"host": "h", "isolation": "bwrap", "judge_version": JUDGE_VERSION}
    for host in ("h", "other"):
        worker.post("/api/v1/worker/hello", {**HELLO, "host": host}, format="json")
    lease = worker.post(f"{base}/claim", who, format="json").json()
    report = report_of(run, Verdict.HOST_UNSUPPORTED, trials=(), message=NO_TRITON)
    body = {"lease_token": lease["lease_token"], "report": report}
    assert worker.post(f"{base}/finish", body, format="json").status_code == 200
    assert worker.post(f"{base}/finish", body, format="json").status_code == 409
    assert worker.post(f"{base}/claim", who, format="json").status_code == 409
    answer = worker.post(f"{base}/claim", {**who, "host": "other"}, format="json")
    assert (answer.status_code, answer.json()["attempt"]) == (200, 1)


def test_hosts_that_are_alive_are_shown_with_their_queue(
    run: Run, worker: APIClient, client: Client
) -> None:
    worker.post("/api/v1/worker/hello", HELLO, format="json")
    (queue,) = client.get("/api/v1/status").json()["queues"]
    assert (queue["hardware"], queue["queued"], queue["hosts_alive"]) == ("cpu", 1, 1)
    WorkerHost.objects.update(last_seen_at=timezone.now() - timedelta(minutes=5))
    (queue,) = client.get("/api/v1/status").json()["queues"]
    assert queue["hosts_alive"] == 0


@pytest.mark.parametrize("change", [{"queue": "gpu"}, {"isolation": "hope"}, {"versions": [1]}])
def test_a_hello_that_makes_no_sense_is_refused(
    db: None, worker: APIClient, change: dict[str, Any]
) -> None:
    answer = worker.post("/api/v1/worker/hello", {**HELLO, **change}, format="json")
    assert answer.status_code == 400
    assert not WorkerHost.objects.exists()
