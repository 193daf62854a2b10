"""What `make` promises: it stops what it started and nothing else, and CI skips nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tooling import headings, install, processes, servers, suite
from tooling.console import Failure, run_logged

ROOT = Path(__file__).resolve().parent.parent
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
DEAF_PARENT = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PKB_STATE_DIR", str(tmp_path))
    yield tmp_path
    processes.stop("probe", patience_s=1)


def _start(command: list[str]) -> processes.Record:
    return processes.start("probe", command, os.environ, fingerprint="one")


def test_a_started_process_is_found_again_and_stopped() -> None:
    record = _start(SLEEP)
    assert processes.find("probe") == record
    assert processes.stop("probe") == record
    assert not record.is_running
    assert processes.find("probe") is None
    assert processes.stop("probe") is None


def test_a_process_that_does_not_listen_is_killed_with_its_children(state: Path) -> None:
    record = _start([sys.executable, "-c", DEAF_PARENT])
    log = state / "log" / "probe.log"
    while not log.read_text().endswith("\n"):
        time.sleep(0.05)
    child = int(log.read_text())
    assert processes.start_ticks(child) is not None
    processes.stop("probe", patience_s=0.5)
    deadline_s = time.monotonic() + 10
    while processes.start_ticks(child) is not None and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not record.is_running
    assert processes.start_ticks(child) is None


@pytest.mark.parametrize("changed", [{"start_ticks": 1}, {"boot_id": "another"}])
def test_a_recycled_pid_is_left_alone(state: Path, changed: dict[str, object]) -> None:
    record = _start(SLEEP)
    path = state / "run" / "probe.json"
    path.write_text(json.dumps({**dataclasses.asdict(record), **changed}))
    assert processes.find("probe") is None
    assert processes.stop("probe") is None
    assert record.is_running
    os.kill(record.pid, signal.SIGKILL)


def test_a_damaged_record_counts_as_none(state: Path) -> None:
    (state / "run").mkdir()
    (state / "run" / "probe.json").write_text('{"pid": 1')
    assert processes.find("probe") is None


def test_the_next_free_port_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert servers.free_port(port, attempts=20) > port
        with pytest.raises(Failure, match="PKB_PORT"):
            servers.free_port(port, attempts=1)


def test_a_failed_command_shows_the_end_of_its_output(state: Path) -> None:
    command = [sys.executable, "-c", "print('reason'); raise SystemExit(3)"]
    with pytest.raises(Failure, match=r"(?s)status 3.*reason.*probe\.log"):
        run_logged("probe", command)
    assert (state / "log" / "probe.log").read_text() == "reason\n"


@pytest.mark.skipif(servers.postgresql_folder() is None, reason="apt-get install postgresql")
def test_postgresql_runs_for_the_block_alone() -> None:
    with servers.postgresql() as url:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


@pytest.mark.skipif(not shutil.which("redis-server"), reason="apt-get install redis-server")
def test_redis_wants_its_password_and_runs_for_the_block_alone() -> None:
    redis = pytest.importorskip("redis")
    with servers.redis() as url:
        assert redis.from_url(url).ping()
        with pytest.raises(redis.AuthenticationError):
            redis.from_url(f"redis://{url.partition('@')[2]}").ping()
    with pytest.raises(redis.ConnectionError):
        redis.from_url(url).ping()


@pytest.mark.parametrize(
    ("in_ci", "outcome"), [("true", "1 failed, 1 skipped"), ("false", "2 skipped")]
)
def test_ci_takes_a_skipped_test_for_a_failed_one(tmp_path: Path, in_ci: str, outcome: str) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_it() -> None:\n    pytest.skip('no server')\n"
        "@pytest.mark.gpu(99)\ndef test_gpu() -> None:\n    pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:django", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={**os.environ, "CI": in_ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout  # no CI has 99 GPUs, so that test may be skipped


def test_a_program_that_cannot_be_installed_is_named_with_its_package() -> None:
    outcome = suite._skipped("redis-server")
    assert "apt-get install redis-server" in outcome.note


def test_make_check_lints_and_runs_quick_tests_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, list[str]]] = []

    def check(name: str, command: list[str], env: dict[str, str] | None = None) -> suite.Outcome:
        ran.append((name, command))
        assert not set(suite.SITE_SETTINGS) & set(env or ())
        return suite.Outcome(name=name, failed=name == "ruff check", seconds=0.0)

    monkeypatch.setenv("DATABASE_URL", "postgres://somewhere")
    monkeypatch.setattr(suite, "_check", check)
    monkeypatch.setattr(install, "virtual_environment", lambda **_: None)
    with pytest.raises(Failure, match=r"^failed: ruff check$"):
        suite.check()
    *static, (name, command) = ran
    assert [one for one, _ in static] == [one for one, _ in suite._static_checks()]
    assert name == "quick tests"
    tested = [word.removeprefix("--ignore=") for word in command if "tests/" in word]
    assert len(tested) > 40
    assert [path for path in tested if not (ROOT / path).exists()] == []


def test_headings_are_those_of_a_page_and_of_its_columns() -> None:
    page = """<h1>Models <bdi>by</bdi>
      problem</h1><p>No heading</p><table><tr><th scope="col">Time<small>a call</small></th></tr>
      <tr><th scope="row">GPT</th><td>1</td></tr></table><h4>Too low</h4><h2 id="x">Kernels</h2>"""
    assert headings.of_page(page) == ["Models by problem", "Time a call", "Kernels"]
