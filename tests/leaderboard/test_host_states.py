"""Draining, disabling and renaming a host: what it is given, and what is taken from it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from rest_framework.test import APIClient

from evaluator.messages.report import JUDGE_VERSION
from leaderboard.models import AuditEntry, HostState, Run, Status, WorkerHost
from leaderboard.runs import host_states as hosts
from leaderboard.runs.claims import OutOfService
from tests.leaderboard.conftest import Bells
from tests.leaderboard.running import HELLO, PROGRESS, claim, fresh, report_of, say_hello

pytestmark = pytest.mark.server

PAGE = "/hosts"
HELLO_BODY = {
    **{name: getattr(HELLO, name) for name in ("host", "queue", "hardware", "isolation")},
    "judge_version": JUDGE_VERSION,
    "versions": {},
}


@pytest.fixture
def operator(db: None) -> User:
    user = User.objects.create_user("operator", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="change_workerhost"))
    return user


def _put(state: HostState, host: str = "h") -> None:
    hosts.put(WorkerHost.objects.get(host=host), None, state)


@pytest.mark.parametrize("state", [HostState.DRAINED, HostState.DISABLED])
def test_a_host_out_of_service_is_given_nothing_until_it_serves_again(
    run: Run, bells: Bells, state: HostState
) -> None:
    say_hello()
    _put(state)
    with pytest.raises(OutOfService, match=f"h is {state.value}") as refused:
        claim(run, "h")
    assert refused.value.code == f"host_{state.value}"
    bells.clear()
    say_hello()
    assert bells == []
    _put(HostState.SERVING)
    say_hello()
    assert bells == [(run.id, "cpu")]
    assert claim(run, "h").tries == 1


def _sent(worker: APIClient, run: Run, what: str, **body: object) -> tuple[int, str]:
    lease = {"lease_token": fresh(run).lease_token, **body}
    answer = worker.post(f"/api/v1/worker/runs/{run.id}/{what}", lease, format="json")
    return answer.status_code, answer.json().get("error", {}).get("code", "")


def test_a_drained_host_finishes_what_it_has_and_a_disabled_one_does_not(
    run: Run, worker: APIClient
) -> None:
    assert (
        worker.post("/api/v1/worker/hello", HELLO_BODY, format="json").json()["state"] == "serving"
    )
    who = {name: HELLO_BODY[name] for name in ("host", "isolation", "judge_version")}
    assert worker.post(f"/api/v1/worker/runs/{run.id}/claim", who, format="json").status_code == 200
    _put(HostState.DISABLED)
    report = report_of(run)
    for what, body in (
        ("heartbeat", {"progress": PROGRESS}),
        ("finish", {"report": report}),
        ("fail", {"error": "no"}),
    ):
        assert _sent(worker, run, what, **body) == (409, "host_disabled")
    assert (
        worker.post("/api/v1/worker/hello", HELLO_BODY, format="json").json()["state"] == "disabled"
    )
    _put(HostState.DRAINED)
    assert _sent(worker, run, "heartbeat", progress=PROGRESS)[0] == 200
    assert _sent(worker, run, "finish", report=report)[0] == 200
    assert fresh(run).status == Status.DONE


def test_operators_do_it_on_a_page_that_keeps_a_log(
    operator: User, client: Client, run: Run
) -> None:
    say_hello()
    number = WorkerHost.objects.get().pk
    client.force_login(operator)
    client.post(PAGE, {"host": number, "state": "drained"})
    client.post(PAGE, {"host": number, "title": " Lab <node> 1 "})
    client.post(PAGE, {"host": number, "title": "Lab <node> 1"})
    assert "Lab &lt;node&gt; 1" in client.get(PAGE).text
    for page in ("/status", "/hardware/cpu"):
        assert "Lab &lt;node&gt; 1" in client.get(page).text
        host = client.get(f"{page}.json").json()["hosts"][0]
        assert (host["name"], host["state"]) == ("Lab <node> 1", "drained")
    entries = AuditEntry.objects.order_by("pk").values_list("actor", "action", "detail__after")
    assert list(entries) == [
        (operator.pk, "drain host", {"state": "drained"}),
        (operator.pk, "rename host", {"title": "Lab <node> 1"}),
    ]
    assert client.post(PAGE, {"host": number, "state": "gone"}).status_code == 400
    assert client.post(PAGE, {"host": number, "title": "x" * 81}).status_code == 400
    assert client.post(PAGE, {"host": "x", "state": "drained"}).status_code == 404
    say_hello()
    assert WorkerHost.objects.get().state == HostState.DRAINED


def test_no_other_gets_there(owner: User, client: Client) -> None:
    assert client.get(PAGE).status_code == 302
    client.force_login(owner)
    assert client.get(PAGE).status_code == 403
