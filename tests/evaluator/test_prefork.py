"""The process that forks judges: ready, replaceable, and never outlived by what it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from evaluator import EvaluatorError, Job, Limits, Verdict
from evaluator.evaluate import Cancelled, evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages import protocol
from evaluator.messages.report import Phase, Progress
from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator.host_traces import is_running, nothing_left_behind

JOB = Job(problem="allreduce", source="def solution(x): return x")
GONE_WITHIN_S = 10.0


@pytest.fixture
def prefork() -> Iterator[PreforkServer]:
    with PreforkServer(warm=False) as own:
        yield own


def test_a_warm_one_has_torch_and_one_thread() -> None:
    """A fork copies the calling thread alone, so locks of others would be held for good."""
    with PreforkServer(warm=True) as prefork:
        with prefork.judge() as judge:
            assert "libtorch" in Path(f"/proc/{judge.pid}/maps").read_text()
        parent = Path(f"/proc/{_pid(prefork)}")
        assert len(list((parent / "task").iterdir())) == 1


def test_it_forks_judge_after_judge(prefork: PreforkServer) -> None:
    for _ in range(2):
        assert evaluate(JOB, prefork=prefork).verdict is Verdict.OUTPUT_MISMATCH


def test_two_judges_at_once_have_their_own_streams(prefork: PreforkServer) -> None:
    with prefork.judge() as first, prefork.judge() as second:
        assert first.pid != second.pid
        protocol.write_job(second.jobs, Job(problem="no such problem", source=""))
        answer = protocol.parse(second.messages.readline())
        assert isinstance(answer, EvaluatorError)
        assert select.select([first.messages], [], [], 0) == ([], [], [])


def test_a_warm_one_keeps_the_judge_for_the_next_job(tmp_path: Path) -> None:
    other_size = replace(JOB, limits=Limits(processes=200))
    with nothing_left_behind(tmp_path), PreforkServer(warm=True) as prefork:
        kept = []
        for job in (JOB, JOB, other_size):
            report = evaluate(job, prefork=prefork)
            assert report.verdict is Verdict.OUTPUT_MISMATCH
            kept.append(_kept(prefork))
        assert len(set(kept)) == 1
        os.kill(kept[0], signal.SIGTERM)
        _wait_until_gone(kept[0])
        assert evaluate(JOB, prefork=prefork).verdict is Verdict.OUTPUT_MISMATCH


def test_a_kept_judge_that_did_not_hear_the_signal_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_left_behind(tmp_path), PreforkServer(warm=True) as prefork:
        evaluate(JOB, prefork=prefork)
        monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)
        began = time.monotonic()
        prefork.end_kept()
        assert time.monotonic() - began < GONE_WITHIN_S


def test_a_judge_that_failed_is_not_kept() -> None:
    with PreforkServer(warm=True) as prefork:
        evaluate(JOB, prefork=prefork)
        first = _kept(prefork)
        with pytest.raises(EvaluatorError, match="no problem is called"):
            evaluate(Job(problem="no such problem", source=""), prefork=prefork)
        _wait_until_gone(first)
        assert evaluate(JOB, prefork=prefork).verdict is Verdict.OUTPUT_MISMATCH
        with pytest.raises(Cancelled):
            evaluate(JOB, lambda _: True, prefork)
        assert prefork._kept is None


@pytest.mark.parametrize("dies", ["before its job is written", "before its job is read"])
def test_a_kept_judge_that_dies_with_its_job_unread_is_replaced(
    dies: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_left_behind(tmp_path), PreforkServer(warm=True) as prefork:
        evaluate(JOB, prefork=prefork)
        first, write_job = _kept(prefork), protocol.write_job

        def kill_beside(stream: IO[str], job: Job) -> None:
            monkeypatch.undo()
            os.kill(first, signal.SIGSTOP)
            if dies == "before its job is read":
                write_job(stream, job)
            os.kill(first, signal.SIGKILL)
            _wait_until_gone(first)
            if dies == "before its job is written":
                write_job(stream, job)

        monkeypatch.setattr(protocol, "write_job", kill_beside)
        assert evaluate(JOB, prefork=prefork).verdict is Verdict.OUTPUT_MISMATCH
        assert _kept(prefork) != first


def test_a_kept_judge_that_failed_idle_is_replaced(tmp_path: Path) -> None:
    with nothing_left_behind(tmp_path), PreforkServer(warm=True) as prefork:
        evaluate(JOB, prefork=prefork)
        first = _kept(prefork)
        assert prefork._kept is not None
        prefork._kept.jobs.write("no job\n")
        prefork._kept.jobs.flush()
        assert select.select([prefork._kept.messages], [], [], GONE_WITHIN_S)[0]
        assert evaluate(JOB, prefork=prefork).verdict is Verdict.OUTPUT_MISMATCH
        assert _kept(prefork) != first


def test_a_kept_judge_that_dies_in_its_job_is_our_fault() -> None:
    with PreforkServer(warm=True) as prefork:
        evaluate(JOB, prefork=prefork)
        first = _kept(prefork)

        def kill(progress: Progress) -> bool:
            if progress.phase is Phase.VERIFY:
                os.kill(first, signal.SIGKILL)
            return False

        with pytest.raises(EvaluatorError, match="ended without a report"):
            evaluate(JOB, kill, prefork)
        assert prefork._kept is None


def test_a_judge_that_was_made_ready_elsewhere_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with PreforkServer(warm=True) as prefork:
        with prefork.judge() as first:
            pass
        monkeypatch.setenv("PKB_SANDBOX_READABLE", "/usr/share")
        with prefork.judge() as judge:
            assert judge.pid != first.pid
            _wait_until_gone(first.pid)


def test_one_that_was_killed_is_replaced(prefork: PreforkServer) -> None:
    prefork.start()
    os.kill(_pid(prefork), signal.SIGKILL)
    _wait_until_gone(_pid(prefork))
    with pytest.raises(EvaluatorError, match="no problem is called"):
        evaluate(Job(problem="no such problem", source=""), prefork=prefork)


def test_a_judge_that_dies_before_it_has_read_its_job_is_our_fault() -> None:
    code = (
        "import sys; from evaluator.judge import prefork, process; process.main = lambda: 1;"
        "prefork.main(int(sys.argv[1]))"
    )
    long = Job(problem="allreduce", source="# " + "x" * 200_000)
    with PreforkServer(warm=False, program=("-c", code)) as deadly:
        for job in (JOB, long):
            with pytest.raises(EvaluatorError, match="ended without a report"):
                evaluate(job, prefork=deadly)


def test_its_judges_die_with_it(tmp_path: Path) -> None:
    with (
        nothing_left_behind(tmp_path),
        PreforkServer(warm=False) as prefork,
        prefork.judge() as judge,
    ):
        os.kill(_pid(prefork), signal.SIGKILL)
        gone, _, _ = select.select([judge.pidfd], [], [], GONE_WITHIN_S)
        assert gone


def test_who_is_asked_to_end_first_keeps_what_it_starts() -> None:
    code = (
        "import os, signal, sys\n"
        "from evaluator.host.parent_death import undisturbed\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "with undisturbed():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('kept')\n"
        "print('not reached')\n"
    )
    done = _run(code)
    assert (done.returncode, done.stdout) == (7, "kept\n")


def test_it_dies_with_who_started_it() -> None:
    code = (
        "import os, signal\n"
        "from evaluator.judge.prefork import PreforkServer\n"
        "prefork = PreforkServer(warm=False)\n"
        "prefork.start()\n"
        "print(prefork._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = _run(code)
    _wait_until_gone(int(done.stdout))


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )


def _kept(prefork: PreforkServer) -> int:
    assert prefork._kept is not None
    return prefork._kept.pid


def _pid(prefork: PreforkServer) -> int:
    assert prefork._process is not None
    return prefork._process.pid


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(pid)
