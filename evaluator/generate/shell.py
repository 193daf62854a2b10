"""Runs an agent's commands in a sandbox where nothing of this host, and no network, is in reach.

Each command has a fresh sandbox, whose scratch folder holds the last step as `kernel.py` and goes
with it: so going on after a crash finds what there was before. It sees the system and this
interpreter with its packages, and nothing else: not the judge's code, no problem, no run's files,
no device, no other process, none of this process's variables.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from evaluator.evaluate import Cancelled
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Limits
from evaluator.messages.report import Isolation
from evaluator.sandbox import sandbox
from evaluator.sandbox.logs import LogCollector
from evaluator.sandbox.selfcheck import check_isolation

MOST_COMMAND_BYTES = 32 << 10
OUTPUT_BYTES = 16 << 10
TIMEOUT_S = 120.0
POLL_S = 0.02
LIMITS = Limits(memory_bytes=8 << 30, processes=256, scratch_bytes=1 << 30)
# Puts the kernel into a folder of its own, and becomes the shell.
_PROGRAM = """
import os, sys
os.mkdir("/tmp/work")
os.chdir("/tmp/work")
with os.fdopen(int(sys.argv[1]), "rb") as source, open("kernel.py", "wb") as kernel:
    kernel.write(source.read())
os.execv("/bin/sh", ["sh", "-c", sys.argv[2]])
"""


class Shell(Protocol):
    """Runs commands for an agent."""

    def run(self, command: str, source: str) -> tuple[str, float]:
        """Return what a model is shown of a command, beside whose working folder's `kernel.py` is
        `source`, and the seconds it took. Raises EvaluatorError, and Cancelled where the run is to
        end."""
        ...


def insist_on_sandbox() -> None:
    """Raise ValueError where this host cannot hold a command in a sandbox."""
    found = check_isolation()
    if not found.isolation.at_least(Isolation.BWRAP):
        raise ValueError(
            f"--shell needs a sandbox, and this host has none: {found.why_not_higher[0]}"
        )


@dataclass(frozen=True, kw_only=True)
class SandboxedShell:
    """Runs commands on this host, in `thread`: where it judges too, the same as the judge's, as a
    command beside a kernel would slow it down."""

    is_over: Callable[[], bool]
    thread: Executor
    timeout_s: float = TIMEOUT_S
    limits: Limits = field(default=LIMITS)

    def run(self, command: str, source: str) -> tuple[str, float]:
        """Return what it shows and the seconds; see Shell."""
        return self.thread.submit(self._run, command, source).result()

    def _run(self, command: str, source: str) -> tuple[str, float]:
        if self.is_over():
            raise Cancelled
        began = time.monotonic()
        logs = LogCollector(OUTPUT_BYTES)
        output_fd, source_fd = logs.open_pipe(0), _file_of(source)
        logs.start()
        try:
            box = _launch(command, self.limits, source_fd, output_fd)
        except BaseException:
            logs.finish()
            raise
        finally:
            os.close(source_fd)
            os.close(output_fd)
        try:
            how = self._wait(box, began + self.timeout_s)
        finally:
            box.kill()
            printed = "".join(log.text for log in logs.finish())
        return f"{how}\n{printed}", round(time.monotonic() - began, 3)

    def _wait(self, box: sandbox.Sandbox, until_s: float) -> str:
        """Return how a command ended, or why it is to end now. Raises Cancelled."""
        while box.is_alive:
            if self.is_over():
                raise Cancelled
            if time.monotonic() > until_s:
                return f"stopped after {self.timeout_s:.0f} s"
            if what := box.exceeded():
                return f"stopped: too much of {what}"
            time.sleep(POLL_S)
        what = box.exceeded()
        code = box.process.returncode
        return f"exit status {code}" + (f"; it met the limit of {what}" if what else "")


def _launch(command: str, limits: Limits, source_fd: int, output_fd: int) -> sandbox.Sandbox:
    """Start a sandbox, and nothing without one."""
    if sandbox.find_bwrap() is None:
        raise EvaluatorError("bubblewrap is gone: no command runs without a sandbox")
    return sandbox.launch(
        ["-c", _PROGRAM, str(source_fd), command],
        limits=limits,
        settings={"PYTHONPATH": ""},
        fds=[source_fd],
        output_fd=output_fd,
    )


def _file_of(text: str) -> int:
    """Return a file that only who inherits it can read."""
    fd = os.memfd_create("kernel")
    os.write(fd, text.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
