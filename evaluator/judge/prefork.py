"""Forks judges from a process that, when warm, has imported torch before the first job comes.

Importing torch takes a judge two seconds of a processor that the submission wants for the same. A
judge that has reported is kept for the next job, as what serves it need not start again; one that
failed, or was cancelled, is ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Self

from evaluator.host.parent_death import die_with_parent
from evaluator.judge import process as judge_process
from evaluator.messages.faults import EvaluatorError
from evaluator.sandbox.sandbox import REPOSITORY

TEARDOWN_S = 40.0
_REQUEST_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class JudgeProcess:
    """Holds a judge that waits for jobs on `jobs`; its messages come from `messages`. A kept judge
    has reported on a job before."""

    pid: int
    pidfd: int
    jobs: IO[str]
    messages: IO[str]
    errors: IO[str]
    environment: Mapping[str, str]
    is_kept: bool = False

    @property
    def is_waiting(self) -> bool:
        """Return True if the process runs and has sent nothing: an idle judge sends only errors."""
        return not select.select([self.pidfd, self.messages.fileno()], [], [], 0)[0]

    def kill(self) -> None:
        """Kill the judge and the oracle's ranks. Its sandboxes die with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Ask it to end its sandboxes and to remove what it made; kill it where it does not.

        The signal stops its work. One that comes just as it begins to wait for a job would be heard
        after that wait, which no more jobs end.
        """
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGTERM)
        with contextlib.suppress(BrokenPipeError):
            self.jobs.close()  # what a judge that died has not read is nobody's loss
        select.select([self.pidfd], [], [], TEARDOWN_S)
        self.kill()
        self.messages.close()
        self.errors.close()
        os.close(self.pidfd)


class PreforkServer:
    """Starts judges, on the supervisor's side. The server starts with the first judge, or before by
    `start`.

    It dies with the thread that started it, and every judge with it. `program` is what serves.
    """

    def __init__(
        self, *, warm: bool, program: Sequence[str] = ("-m", "evaluator.judge.prefork")
    ) -> None:
        self._argv = [sys.executable, *program]
        self._is_warm = warm
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._kept: JudgeProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> socket.socket:
        """Return the channel to the server, which is started where it does not run."""
        if self._channel is not None and self._process is not None and self._process.poll() is None:
            return self._channel
        self.close()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*self._argv, str(theirs.fileno()), *(["warm"] if self._is_warm else [])],
                stdin=subprocess.DEVNULL,
                cwd=REPOSITORY,
                env=_environment(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509 - one call, no Python locks
            )
        return self._channel

    def end_kept(self) -> None:
        """End the judge that is kept for the next job, and all that serves it."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.end()

    def close(self) -> None:
        """End the server and every judge."""
        self.end_kept()
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._channel = self._process = None

    @contextlib.contextmanager
    def judge(self) -> Iterator[JudgeProcess]:
        """Yield a judge for one job. A warm server keeps it on leaving, unless an exception is why.
        Raises EvaluatorError where the server is gone."""
        process = self._take_kept() or self._new_judge(_environment())
        try:
            yield process
        except BaseException:
            process.end()
            raise
        if self._is_warm and self._kept is None and process.is_waiting:
            self._kept = replace(process, is_kept=True)
        else:
            process.end()

    def _take_kept(self) -> JudgeProcess | None:
        if self._kept and not (self._kept.is_waiting and self._kept.environment == _environment()):
            self.end_kept()
        kept, self._kept = self._kept, None
        return kept

    def _new_judge(self, environment: Mapping[str, str]) -> JudgeProcess:
        job_end, jobs = os.pipe()
        messages, message_end = os.pipe()
        errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - `end` closes it
        try:
            ends = [job_end, message_end, errors.fileno()]
            pid, pidfd = self._fork(ends, environment)
        except EvaluatorError:
            for fd in (jobs, messages):
                os.close(fd)
            errors.close()
            raise
        finally:
            os.close(job_end)
            os.close(message_end)
        return JudgeProcess(
            pid=pid,
            pidfd=pidfd,
            jobs=os.fdopen(jobs, "w"),
            messages=os.fdopen(messages),
            errors=errors,
            environment=environment,
        )

    def _fork(self, fds: list[int], environment: Mapping[str, str]) -> tuple[int, int]:
        channel = self.start()
        try:
            socket.send_fds(channel, [json.dumps(environment).encode()], fds)
            answer, (pidfd,), _, _ = socket.recv_fds(channel, 64, 1)
        except (OSError, ValueError):
            raise EvaluatorError("the process that starts judges is gone") from None
        return int(answer), pidfd


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}


def serve(channel: socket.socket) -> None:
    """Fork a judge for each request, until the supervisor closes its end."""
    children: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([channel.fileno(), *children], [], [])
        for pidfd in [fd for fd in children if fd in ready]:
            os.waitpid(children.pop(pidfd), 0)
            os.close(pidfd)
        if channel.fileno() not in ready:
            continue
        request, fds, _, _ = socket.recv_fds(channel, _REQUEST_BYTES, 3)
        if not request:
            return
        own_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            for other in (channel.detach(), *children):
                os.close(other)
            _become_judge(own_pid, json.loads(request), fds)
        pidfd = os.pidfd_open(pid)
        children[pidfd] = pid
        for fd in fds:
            os.close(fd)
        socket.send_fds(channel, [str(pid).encode()], [pidfd])


def _become_judge(parent_pid: int, environment: dict[str, str], fds: list[int]) -> None:
    """Run a judge on these descriptors. Never returns."""
    status = 1
    try:
        os.setsid()
        die_with_parent(parent_pid)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        status = judge_process.main()
    finally:
        os._exit(status)


def main(channel_fd: int, *mode: str) -> None:
    """Serve on a descriptor; with `warm` in the mode, import torch first."""
    channel = socket.socket(fileno=channel_fd)
    if "warm" in mode:
        judge_process.preload()
    serve(channel)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
