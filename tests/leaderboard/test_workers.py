"""Real Celery workers on a real broker against a live site, some of them killed with -9.

On the embedded broker, and on whatever CELERY_BROKER_URL names.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.conf import settings as site_settings

from leaderboard.kit import doorbells
from leaderboard.models import ApiToken, Hardware, Kernel, Problem, Run, Scope, Summary, WorkerHost
from leaderboard.models.runs import FINAL
from leaderboard.runs import evaluation
from leaderboard.submissions import queue
from leaderboard.submissions.queue import Target
from tests.leaderboard import factory

pytestmark = pytest.mark.server

ROOT = Path(site_settings.BASE_DIR)
PATIENCE_S = 60.0
Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def hardware(transactional_db: None) -> Hardware:
    """A queue that no other test listens to, also where all share one broker."""
    slug = f"cpu-{uuid.uuid4().hex[:8]}"
    return Hardware.objects.create(slug=slug, title="test", device="cpu", max_world_size=8)


@pytest.fixture
def site(live_server: Any, settings: Any, tmp_path: Path, monkeypatch: Any) -> str:
    """A site that rings for real and loses patience fast."""
    settings.CELERY_BROKER_FOLDER = tmp_path / "broker"
    settings.PKB_LEASE_S, settings.PKB_HEARTBEAT_S, settings.PKB_POLL_S = 3, 1, 1
    settings.PKB_RERING_S, settings.PKB_HOST_SILENCE_S = 3, 4
    monkeypatch.setattr(doorbells, "app", doorbells.make_app())
    monkeypatch.setattr("leaderboard.submissions.queue.ring_later", doorbells.ring_later)
    monkeypatch.setattr("leaderboard.runs.hosts.ring", doorbells.ring)
    return str(live_server.url)


@pytest.fixture
def start(site: str, hardware: Hardware, tmp_path: Path) -> Iterator[Start]:
    """Starts workers; whatever of them is left at the end is killed."""
    _, token = ApiToken.objects.issue(scope=Scope.WORKER, name="test", good_for={"groups": 9})
    env = {
        **{name: text for name, text in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"},
        "PKB_SITE_URL": site,
        "PKB_WORKER_TOKEN": token,
        "PKB_QUEUE": hardware.slug,
        "PKB_STATE_DIR": str(tmp_path),
        "PKB_MIN_ISOLATION": "none",
    }
    started: list[subprocess.Popen[bytes]] = []

    def one() -> subprocess.Popen[bytes]:
        command = ["celery", "-A", "tests.leaderboard.sleeping_worker", "worker"]
        options = ["-Q", hardware.slug, "-c", "1", "-n", f"{uuid.uuid4().hex}@%h"]
        log = (tmp_path / f"worker-{len(started)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", *command, *options],
            cwd=ROOT,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        log.close()
        started.append(process)
        return process

    yield one
    for process in started:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The main process alone: its children must not outlive it."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    _wait(lambda: not _session(process.pid), "the children of a killed worker live on")


def _session(leader: int) -> list[int]:
    """Processes of a session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def _wait(condition: Callable[[], Any], complaint: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        if condition():
            return
        time.sleep(0.1)
    runs = Run.objects.values_list("status", "tries", "last_error")
    raise AssertionError(f"{complaint}: {list(runs)}")


def _enqueue(hardware: Hardware, problem: Problem, seconds: list[float]) -> list[Run]:
    target = Target(hardware=hardware.slug, **factory.SETTING)
    submission = factory.make_submission(k=len(seconds))
    kernels: list[tuple[Kernel, Target]] = []
    for attempt, length_s in enumerate(seconds, start=1):
        source = f"{factory.SOURCE}# {length_s} s\n"
        kernel = factory.make_kernel(submission, problem, source=source, attempt=attempt)
        kernels.append((kernel, target))
    return queue.enqueue(kernels)


def _all_final() -> bool:
    return not Run.objects.exclude(status__in=FINAL).exists()


def test_every_run_is_done_once_though_workers_are_killed(
    start: Start, hardware: Hardware, problem: Problem
) -> None:
    workers = [start(), start()]
    runs = _enqueue(hardware, problem, [1.5] * 6)
    for kill in range(2):
        _wait(lambda: Run.objects.running().count() == 2, "two workers do not run two runs")
        _kill(workers[kill])
        workers.append(start())
    _wait(_all_final, "not every run ended")
    assert {run.status for run in Run.objects.all()} == {"done"}
    assert sum(run.tries for run in Run.objects.all()) <= len(runs) + 2
    assert max(run.tries for run in Run.objects.all()) >= 2
    assert Summary.objects.get().made == len(runs)


def test_a_run_waits_for_a_worker_and_its_bell_may_be_lost(
    start: Start, hardware: Hardware, problem: Problem, monkeypatch: Any
) -> None:
    monkeypatch.setattr("leaderboard.submissions.queue.ring_later", lambda _: None)
    _enqueue(hardware, problem, [0.1])
    start()
    _wait(_all_final, "a run without a bell was never found")
    assert Run.objects.get().tries == 1


def test_a_running_run_is_cancelled(start: Start, hardware: Hardware, problem: Problem) -> None:
    start()
    (run,) = _enqueue(hardware, problem, [30.0])
    _wait(Run.objects.running().exists, "the run never started")
    evaluation.cancel(run)
    _wait(_all_final, "the run was not cancelled")
    assert Run.objects.get().status == "cancelled"


def test_a_worker_that_is_gone_is_no_longer_shown(start: Start, hardware: Hardware) -> None:
    process = start()
    alive = WorkerHost.objects.alive
    _wait(lambda: alive().filter(queue=hardware.slug).exists(), "the worker never said hello")
    _kill(process)
    _wait(lambda: not alive().exists(), "a dead worker is still alive")


def test_a_broker_that_refuses_keeps_nobody_waiting(
    problem: Problem, settings: Any, monkeypatch: Any, hardware: Hardware
) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    monkeypatch.delenv("CELERY_BROKER_URL", raising=False)  # Celery prefers it to its settings
    monkeypatch.setattr(doorbells, "app", doorbells.make_app())
    monkeypatch.setattr("leaderboard.submissions.queue.ring_later", doorbells.ring_later)
    started_s = time.monotonic()
    runs = _enqueue(hardware, problem, [0.1] * 40)
    assert set(Run.objects.values_list("status", flat=True)) == {"queued"}
    bells = [(run.id, hardware.slug) for run in runs]
    assert doorbells.ring(bells) == 0
    assert time.monotonic() - started_s < 10  # to ask for each by itself took 80
    refusing = Mock(side_effect=OSError)
    monkeypatch.setattr(doorbells.app, "send_task", refusing)
    doorbells.ring_later(bells)
    doorbells._BESIDE.submit(bool).result()
    assert refusing.call_count == 1
