"""Training with the package alone: a toy GRPO loop against a live site and a real worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from leaderboard.kit import doorbells
from leaderboard.models import ApiToken, Judgement, Kernel, Run, Scope, Submission, WorkerHost
from tests.evaluator.client.wheel import installed
from tests.leaderboard import factory

ROOT = Path(__file__).resolve().parents[2]
Started = Callable[[str], None]


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, unpacked: what the loop has, and nothing else."""
    return installed(tmp_path_factory.mktemp("package"))


@pytest.fixture
def worker(
    live_server: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Started]:
    """Starts a worker of the queue `cpu` for a site that knows every problem and rings for real."""
    settings.CELERY_BROKER_FOLDER = tmp_path / "broker"
    settings.PKB_POLL_S, settings.PKB_RERING_S = 1, 3
    monkeypatch.setattr(doorbells, "app", doorbells.make_app())
    monkeypatch.setattr("leaderboard.runs.hosts.ring", doorbells.ring)
    call_command("sync_problems", verbosity=0)
    _, token = ApiToken.objects.issue(scope=Scope.WORKER, name="worker", good_for={"groups": 1})
    env = {name: text for name, text in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    env |= {"PKB_SITE_URL": str(live_server.url), "PKB_WORKER_TOKEN": token, "PKB_QUEUE": "cpu"}
    env |= {"PKB_STATE_DIR": str(tmp_path), "PKB_MIN_ISOLATION": "none"}
    # What the environment names instead is nobody's here.
    env["CELERY_BROKER_URL"] = settings.CELERY_BROKER_URL
    started: list[subprocess.Popen[bytes]] = []

    def start(application: str) -> None:
        command = [sys.executable, "-m", "celery", "-A", application, "worker", "-Q", "cpu"]
        with (tmp_path / "worker.log").open("wb") as log:
            options = {"cwd": ROOT, "env": env, "stdout": log, "stderr": log}
            started.append(subprocess.Popen([*command, "-c", "1"], **options))  # type: ignore[call-overload]
        until_s = time.monotonic() + 60
        while not WorkerHost.objects.serving().exists():
            assert time.monotonic() < until_s, (tmp_path / "worker.log").read_text()
            time.sleep(0.1)

    yield start
    for process in started:
        process.terminate()
        process.wait(60)


def _trained(package: Path, site: str, steps: int) -> dict[str, Any]:
    """Run the loop in a process that has the package and the standard library."""
    owner = factory.make_user("owner")
    _, token = ApiToken.objects.issue(scope=Scope.SUBMIT, name="training", owner=owner)
    loop = (ROOT / "tests/leaderboard/training_loop.py").read_text()
    future = "from __future__ import annotations\n"
    rest = loop.partition(future)[2]
    code = f"{future}import sys; sys.path.insert(0, {str(package)!r})\n{rest}"
    command = [sys.executable, "-I", "-S", "-c", code, site, token, str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def _is_untouched() -> bool:
    """Return True if training left no trace among submissions."""
    return not any(model.objects.exists() for model in (Submission, Kernel, Run))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_hundred_steps_teach_the_policy_to_write_a_correct_kernel(
    worker: Started, package: Path, live_server: Any
) -> None:
    worker("tests.leaderboard.quick_worker")
    found = _trained(package, live_server.url, 100)
    assert (found["steps"], found["torch"]) == (100, False)
    assert found["chances"][2] > 0.9
    assert set(Judgement.objects.values_list("status", flat=True)) == {"done"}
    assert _is_untouched()


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_the_judge_of_this_tree_answers_the_loop(
    worker: Started, package: Path, live_server: Any
) -> None:
    worker("evaluator.worker")
    steps = int(os.environ.get("TRAINING_STEPS", "8"))
    found = _trained(package, live_server.url, steps)
    assert found["steps"] == steps
    verdicts = {one.outcome["verdict"] for one in Judgement.objects.all() if one.outcome}
    assert verdicts == {"ok", "output_mismatch"}
    assert _is_untouched()
