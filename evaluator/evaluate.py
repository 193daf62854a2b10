"""Judges one kernel: checks the job, starts a judge, follows it, returns its report.

Standard library only: torch lives in the judge's process and in the ranks.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
from collections.abc import Callable, Iterator
from typing import IO

from evaluator.host.load import most_job_s
from evaluator.judge.prefork import PreforkServer
from evaluator.messages import protocol
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Job
from evaluator.messages.report import Phase, Progress, Report

logger = logging.getLogger(__name__)

OnProgress = Callable[[Progress], bool]
POLL_S = 0.5


class Cancelled(Exception):
    """Says that the evaluation was stopped because its caller asked for it."""


class _JobUnread(EvaluatorError):
    """Says that a kept judge ended before it sent a message about its job."""


def evaluate(
    job: Job, on_progress: OnProgress | None = None, prefork: PreforkServer | None = None
) -> Report:
    """Judge one kernel in fresh processes; who judges many keeps a warm `prefork` for them.

    `on_progress` is called from this thread at least twice a second; when it returns True, all is
    stopped and Cancelled is raised. Raises EvaluatorError for what is not the submitter's fault.
    """
    with contextlib.ExitStack() as stack:
        forks = prefork or stack.enter_context(PreforkServer(warm=False))
        try:
            return _judged(job, on_progress, forks)
        except _JobUnread as error:
            logger.warning("a new judge takes the job: %s", error)
            return _judged(job, on_progress, forks)


def _judged(job: Job, on_progress: OnProgress | None, forks: PreforkServer) -> Report:
    """Give the job to one judge and follow it. Raises _JobUnread where another judge may take the
    job: no kernel runs before the first message."""
    with forks.judge() as judge:
        timer = threading.Timer(most_job_s(job.limits), judge.kill)
        timer.start()
        try:
            protocol.write_job(judge.jobs, job)
            return _follow(judge.messages, on_progress)
        except (ValueError, EOFError, BrokenPipeError) as error:
            judge.errors.seek(0)
            tail = judge.errors.read()[-2000:]
            is_unread = judge.is_kept and not isinstance(error, ValueError)
            kind = _JobUnread if is_unread else EvaluatorError
            raise kind(f"the judge ended without a report: {tail}") from None
        finally:
            timer.cancel()
            timer.join()


def _follow(channel: IO[str], on_progress: OnProgress | None) -> Report:
    """Read messages until the report; `on_progress` hears of each, and of silence twice a
    second. Raises EOFError where no message comes, and ValueError where no report does."""
    progress, is_heard = Progress(phase=Phase.BUILD), False
    for line in _lines(channel.fileno()):
        if line is not None:
            message = protocol.parse(line)
            if isinstance(message, Report):
                return message
            if isinstance(message, EvaluatorError):
                raise message
            progress, is_heard = message, True
        if on_progress is not None and on_progress(progress):
            raise Cancelled
    raise ValueError("no report") if is_heard else EOFError("no message")


def _lines(fd: int) -> Iterator[str | None]:
    """Yield lines as they come; None after each `POLL_S` without one."""
    rest = b""
    while True:
        ready, _, _ = select.select([fd], [], [], POLL_S)
        if not ready:
            yield None
            continue
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode()
