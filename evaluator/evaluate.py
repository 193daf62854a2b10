"""The story in one screen: check the job, start a judge, follow it, return its report.

Standard library only: torch lives in the judge's process and in the ranks.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import IO

from evaluator import protocol
from evaluator.job import Backend, Device, Job
from evaluator.report import EvaluatorError, Phase, Progress, Report
from evaluator.sandbox import REPOSITORY

OnProgress = Callable[[Progress], bool]
OVERHEAD_S = 300.0
TEARDOWN_S = 40.0
TICK_S = 0.5
CPU_BACKENDS = frozenset({Backend.PYTORCH, Backend.CPP})
_PR_SET_PDEATHSIG = 1


class Cancelled(Exception):
    """The evaluation was stopped because its caller asked for it."""


def evaluate(job: Job, on_progress: OnProgress | None = None) -> Report:
    """Judge one kernel in fresh processes.

    `on_progress` is called from this thread at least twice a second; when it returns True, all is
    stopped and Cancelled is raised. Raises EvaluatorError for what is not the submitter's fault.
    """
    if job.device is Device.CPU and job.backend not in CPU_BACKENDS:
        raise EvaluatorError(f"the {job.backend} backend needs a GPU; this run asked for the CPU")
    with tempfile.TemporaryFile("w+", errors="replace") as errors, _judge_process(errors) as judge:
        assert judge.stdin is not None
        assert judge.stdout is not None
        protocol.write_job(judge.stdin, job)
        limits = job.limits
        allowed_s = OVERHEAD_S + limits.build_s + limits.verify_s + limits.timed_s
        timer = threading.Timer(allowed_s, _kill_group, [judge])
        timer.start()
        try:
            return _follow(judge.stdout, on_progress)
        except ValueError:
            errors.seek(0)
            tail = errors.read()[-2000:]
            raise EvaluatorError(f"the judge ended without a report: {tail}") from None
        finally:
            timer.cancel()


def _follow(channel: IO[str], on_progress: OnProgress | None) -> Report:
    """Messages until the report; `on_progress` hears of each, and of silence twice a second."""
    progress = Progress(phase=Phase.BUILD)
    for line in _lines(channel.fileno()):
        if line is not None:
            message = protocol.parse(line)
            if isinstance(message, Report):
                return message
            if isinstance(message, EvaluatorError):
                raise message
            progress = message
        if on_progress is not None and on_progress(progress):
            raise Cancelled
    raise ValueError("no report")


def _lines(fd: int) -> Iterator[str | None]:
    """Lines as they come; None after each `TICK_S` without one."""
    rest = b""
    while True:
        ready, _, _ = select.select([fd], [], [], TICK_S)
        if not ready:
            yield None
            continue
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode()


@contextlib.contextmanager
def _judge_process(errors: IO[str]) -> Iterator[subprocess.Popen[str]]:
    """A judge whose death kills its sandboxes, and which dies with this process."""
    libc = ctypes.CDLL(None)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "evaluator.judge"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=REPOSITORY,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509 - one call, no Python locks
    ) as judge:
        try:
            yield judge
        finally:
            judge.terminate()  # it ends its sandboxes and removes what it made
            with contextlib.suppress(subprocess.TimeoutExpired):
                judge.wait(TEARDOWN_S)
            _kill_group(judge)


def _kill_group(judge: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(judge.pid, signal.SIGKILL)
