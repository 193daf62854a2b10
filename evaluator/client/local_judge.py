"""Judges on this host by a clone's judge, `python -m evaluator serve` in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import deque
from pathlib import Path

from .failures import Misused, NoAnswer
from .flights import Waiting
from .items import Item
from .judge import BaseJudge
from .rewards import Reward

_DEVICES = re.compile(r"cpu|cuda(:\d{1,3}(,\d{1,3})*)?")
AHEAD = 2  # so that the judge need not wait for the next item


class LocalJudge(BaseJudge):
    """Judges on this host, one kernel after the other, with the sandbox and the checks of a site.

    `devices` are `cpu`, `cuda` (all GPUs) or some, `cuda:0,1`. `clone` is the project's folder: by
    default PKB_CLONE, or the current folder. `python` runs it: by default its `.venv/bin/python`,
    or this one. Raises Misused where that is no clone.
    """

    def __init__(
        self,
        devices: str = "cpu",
        *,
        clone: str | Path | None = None,
        python: str | None = None,
        reward: str | Reward = "correct",
        rewards_flagged: bool = False,
    ) -> None:
        super().__init__(reward, rewards_flagged)
        if not _DEVICES.fullmatch(devices):
            raise ValueError(f"devices {devices!r} is neither cpu, cuda nor like cuda:0,1")
        folder = Path(clone or os.environ.get("PKB_CLONE") or Path.cwd()).resolve()
        if not (folder / "evaluator" / "evaluate.py").is_file():
            raise Misused(f"{folder} is no clone of the project.", "Name one: clone=…, PKB_CLONE.")
        own = folder / ".venv" / "bin" / "python"
        self._command = [python or str(own if own.exists() else sys.executable)]
        self._command += ["-m", "evaluator", "serve"]
        self._device, _, indices = devices.partition(":")
        self._env = {**os.environ, **({"PKB_GPUS": indices} if indices else {})}
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def close(self) -> None:
        """End the judge."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait()
        process.stdout.close()

    def _flight(self) -> _LocalFlight:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return _LocalFlight(self._process, self._device)


class _LocalFlight(Waiting):
    """Writes an item a line to the judge, and reads a report a line."""

    def __init__(self, process: subprocess.Popen[str], device: str) -> None:
        super().__init__()
        self._process, self._device = process, device
        self._out: deque[Item] = deque()

    @property
    def has_room(self) -> bool:
        return len(self._unsent) + len(self._out) < AHEAD

    @property
    def is_waiting(self) -> bool:
        return bool(self._out)

    def send(self) -> None:
        """Hand an item to the judge. Raises NoAnswer where it is gone."""
        item = self._unsent.popleft()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"device": self._device, **item.wire()}) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise _gone(self._process) from None
        self._out.append(item)

    def fetch(self) -> None:
        """Wait for the next report. Raises NoAnswer where the judge is gone."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise _gone(self._process)
        self._answered.append((self._out.popleft(), json.loads(line)))

    def cancel(self) -> None:
        """Read what the judge was given, so that the next flight hears its own answers."""
        while self._out and self._process.poll() is None:
            self.fetch()


def _gone(process: subprocess.Popen[str]) -> NoAnswer:
    return NoAnswer(f"the local judge ended (status {process.poll()})", is_passing=False)
