"""The worker against a site of the test's own that answers over real HTTP."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from celery.signals import worker_process_shutdown

from evaluator import EvaluatorError, Job, Phase, Progress, Report, worker
from evaluator.evaluate import Cancelled, OnProgress
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.codec import encode
from evaluator.messages.report import UNCLEAN_HOST, Isolation
from evaluator.worker.site import LeaseLost, Site
from tests.evaluator.host_traces import is_running
from tests.evaluator.test_messages import REPORT

JOB = Job(problem="allreduce", source="def solution(x): return x")
RUN = "6f0c1c6e-0000-4000-8000-000000000001"


NOTHING: dict[str, Any] = {}


class FakeSite(ThreadingHTTPServer):
    """Answers from a script: action -> list of (status, body), the last one again and again."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: dict[str, list[tuple[int, dict[str, Any]]]] = {
            "claim": [(200, {"job": encode(JOB), "lease_token": "t", "heartbeat_s": 15})],
            "heartbeat": [(200, {"cancel": False})],
            "finish": [(200, {})],
            "fail": [(200, {})],
            "hello": [(200, {"poll_s": 10, "heartbeat_s": 15})],
        }
        self.heard: list[tuple[str, dict[str, Any]]] = []

    @property
    def actions(self) -> list[str]:
        return [action for action, _ in self.heard]


class _Handler(BaseHTTPRequestHandler):
    server: FakeSite

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        action = self.path.rsplit("/", 1)[-1]
        if self.headers["Authorization"] != "Bearer secret":
            status, answer = 401, NOTHING
        else:
            self.server.heard.append((action, body))
            script = self.server.script[action]
            status, answer = script.pop(0) if len(script) > 1 else script[0]
        payload = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def fake() -> Iterator[FakeSite]:
    with FakeSite() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def site(fake: FakeSite, monkeypatch: pytest.MonkeyPatch) -> Site:
    url = f"http://127.0.0.1:{fake.server_port}/"
    monkeypatch.setenv("PKB_SITE_URL", url)
    monkeypatch.setenv("PKB_WORKER_TOKEN", "secret")
    monkeypatch.setenv(worker.MEASURED, REPORT.isolation)
    monkeypatch.setattr("evaluator.worker.site.RETRY_PAUSES_S", (0, 0, 0))
    return Site(url=url, token="secret")


def evaluation(monkeypatch: pytest.MonkeyPatch, result: Report | Exception) -> None:
    def run(job: Job, on_progress: OnProgress, prefork: PreforkServer) -> Report:
        assert job == JOB
        assert prefork is worker.PREFORK
        for phase in (Phase.BUILD, Phase.VERIFY):
            if on_progress(Progress(phase=phase)):
                raise Cancelled
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(worker, "evaluate", run)


def test_a_run_is_claimed_judged_and_finished(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation(monkeypatch, REPORT)
    worker.evaluate_run(RUN)
    assert fake.actions == ["claim", "heartbeat", "finish"]
    _, finish = fake.heard[-1]
    assert finish == {"lease_token": "t", "report": encode(REPORT)}


def test_a_run_that_somebody_else_has_is_left_alone(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.script["claim"] = [(409, {})]
    evaluation(monkeypatch, REPORT)
    worker.evaluate_run(RUN)
    assert fake.actions == ["claim"]


def test_our_fault_gives_the_run_back(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation(monkeypatch, EvaluatorError("the disk is full"))
    worker.evaluate_run(RUN)
    assert fake.heard[-1] == ("fail", {"lease_token": "t", "error": "the disk is full"})


def test_a_worker_whose_host_is_unclean_reports_and_ends(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: ended.append((pid, number)))
    evaluation(monkeypatch, replace(REPORT, flags=(UNCLEAN_HOST,)))
    worker.evaluate_run(RUN)
    assert fake.actions[-1] == "finish"
    assert ended == [(os.getppid(), signal.SIGTERM)]


def test_a_lost_run_is_dropped(fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.script["heartbeat"] = [(409, {})]
    evaluation(monkeypatch, REPORT)
    worker.evaluate_run(RUN)
    assert fake.actions == ["claim", "heartbeat"]


def test_a_cancelled_run_is_given_back_at_once(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.script["heartbeat"] = [(200, {"cancel": True})]
    evaluation(monkeypatch, REPORT)
    worker.evaluate_run(RUN)
    assert fake.actions == ["claim", "heartbeat", "fail"]


def test_a_result_survives_a_site_that_restarts(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.script["finish"] = [(503, {}), (500, {}), (200, {})]
    evaluation(monkeypatch, REPORT)
    worker.evaluate_run(RUN)
    assert fake.actions == ["claim", "heartbeat", "finish", "finish", "finish"]


def test_a_report_that_the_site_refuses_is_our_fault_and_not_sent_again(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.script["finish"] = [(400, {})]
    evaluation(monkeypatch, REPORT)
    worker.evaluate_run(RUN)
    assert fake.actions == ["claim", "heartbeat", "finish", "fail"]
    assert "answered 400" in fake.heard[-1][1]["error"]


def test_a_report_that_the_site_took_back_with_the_run_ends_quietly(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.script["finish"], fake.script["fail"] = [(400, {})], [(409, {})]
    evaluation(monkeypatch, REPORT)
    worker.evaluate_run(RUN)
    assert fake.actions == ["claim", "heartbeat", "finish", "fail"]


def test_a_sandbox_that_does_not_hold_is_none(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(worker.MEASURED, Isolation.NONE)
    evaluation(monkeypatch, REPORT)
    worker.evaluate_run(RUN)
    assert fake.heard[-1][1]["report"] == encode(replace(REPORT, isolation=Isolation.NONE))


def test_a_claim_repeats_what_the_hello_said(fake: FakeSite, site: Site) -> None:
    worker.introduce()
    fake.script["claim"] = [(409, {})]
    worker.evaluate_run(RUN)
    (_, hello), (_, claim) = fake.heard
    assert claim == {name: hello[name] for name in ("host", "isolation", "judge_version")}


def test_a_worker_starts_where_the_site_is_not_there_yet(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.script["hello"] = [(503, {})]
    worker.introduce()
    assert fake.actions == ["hello"]


def test_a_heartbeat_that_fails_does_not_end_the_run(
    fake: FakeSite, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.script["heartbeat"] = [(500, {})]
    evaluation(monkeypatch, REPORT)
    worker.evaluate_run(RUN)
    assert fake.actions[-1] == "finish"


def test_heartbeats_come_in_time_and_not_more_often(site: Site, fake: FakeSite) -> None:
    lease = site.claim(RUN, {})
    assert lease is not None
    beat = worker._Heartbeat(site, lease)
    for _ in range(50):
        beat(Progress(phase=Phase.BUILD))
    assert fake.actions == ["claim", "heartbeat"]
    beat._sent_at -= lease.heartbeat_s
    beat(Progress(phase=Phase.BUILD))
    assert fake.actions == ["claim", "heartbeat", "heartbeat"]


def test_a_wrong_token_is_an_error_with_its_status(fake: FakeSite, site: Site) -> None:
    with pytest.raises(EvaluatorError, match="answered 401"):
        Site(url=site.url, token="wrong").hello({})


def test_a_fenced_finish_is_a_lost_lease(fake: FakeSite, site: Site) -> None:
    lease = site.claim(RUN, {})
    assert lease is not None
    fake.script["finish"] = [(409, {})]
    with pytest.raises(LeaseLost):
        site.finish(lease, REPORT)


def test_a_site_that_is_not_there_is_named(unused_port: int) -> None:
    with pytest.raises(EvaluatorError, match="cannot be reached"):
        Site(url=f"http://127.0.0.1:{unused_port}", token="x").hello({})


@pytest.fixture
def unused_port() -> int:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return server.server_port


def test_a_worker_refuses_to_serve_below_its_level(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PKB_MIN_ISOLATION", Isolation.VM)
    with pytest.raises(SystemExit, match="vm is required"):
        worker.measure_isolation()


def test_a_worker_without_a_token_says_which_setting_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PKB_SITE_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("PKB_WORKER_TOKEN", raising=False)
    with pytest.raises(SystemExit, match="PKB_WORKER_TOKEN"):
        worker.site_from_environment()


def test_the_embedded_broker_needs_no_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CELERY_BROKER_URL", raising=False)
    monkeypatch.setenv("PKB_STATE_DIR", str(tmp_path))
    settings = worker.broker_settings()
    assert settings["broker_url"] == "filesystem://"
    assert Path(settings["broker_transport_options"]["data_folder_in"]).is_dir()
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://localhost:1/0")
    assert worker.broker_settings() == {"broker_url": "redis://localhost:1/0"}


def test_a_pool_process_that_ends_leaves_no_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    with PreforkServer(warm=True) as own:
        monkeypatch.setattr(worker, "PREFORK", own)
        own.start()
        with own.judge() as judge:
            pass
        assert is_running(judge.pid)
        worker_process_shutdown.send(sender=None)
        assert not is_running(judge.pid)
