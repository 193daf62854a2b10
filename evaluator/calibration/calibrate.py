"""Measures what the GPUs of this host really reach, beside what their datasheet states.

Standard library only: torch lives in the measuring processes (`rank.py`). They write one
line per finding, so that one that dies takes nothing with it but what it had not measured yet.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from evaluator.calibration.measurements import Calibration, Missed, Said, measured, merged
from evaluator.host import gpus
from evaluator.host.host import MULTICAST_OFF, Host
from evaluator.host.leftovers import own_folder, remove_folder
from evaluator.messages.codec import decode
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.report import GpuState
from evaluator.messages.text import plain_text
from evaluator.sandbox.sandbox import REPOSITORY
from evaluator.timing.limits import limits_of

# One process that sees all GPUs; then one for each GPU, named by its rank.
PEERS = "peers"
PEERS_LIMIT_S, RANKS_LIMIT_S = 60.0, 90.0
GRACE_S = 5.0  # for the other processes, once one has failed
POLL_S = 0.2
MOST_REASON_CHARS = 400
METHOD = (
    "Links: one process copies 256 MiB between each ordered pair by the copy engine, CUDA events; "
    "then between all pairs at once on streams of their own, 8 copies a pair, wall time, bytes "
    "received per GPU. All else: one process a GPU. Each by itself, at the same time: copy (bytes "
    "read and written) and sum of 4 GiB; products of random matrices of 8192 x 8192 (4096 for "
    "float64), warm, CUDA events; additions to one element, 1000 launched back to back, and one at "
    "a time with a wait, wall time. Then together, by the slowest rank of each sample: NCCL "
    "all-to-all of 256 MiB a rank (bytes received); NCCL all-reduce of one element and the "
    "symmetric-memory barrier, 100 between two CUDA events. Signals: ranks 0 and 1 answer each "
    "other, half a round trip, by put_signal and wait_signal (a kernel each), and by writes to "
    "each other's memory inside one kernel."
)


@dataclass(kw_only=True)
class Crew:
    """Runs the measuring processes of one calibration; holds what they said and how their GPUs
    fared."""

    folder: Path
    host: Host
    said: list[Said] = field(default_factory=list)
    states: tuple[GpuState, ...] = ()

    def run(self, programs: Mapping[str, list[str]], limit_s: float) -> None:
        """Run these processes at once, by name, until they end or `limit_s` have passed."""
        environment = os.environ | self.host.settings
        with contextlib.ExitStack() as stack:
            processes = {}
            for name, argv in programs.items():
                errors = stack.enter_context(self._errors_of(name).open("wb"))
                processes[name] = subprocess.Popen(
                    argv,
                    cwd=REPOSITORY,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                )
                stack.callback(_end, processes[name])
            stopped = self._wait(processes, limit_s)
        for name, process in processes.items():
            self.said += lines_of(self.folder / f"{name}.jsonl")
            if name in stopped:
                self._missed(name, f"stopped: {stopped[name]}")
            elif process.returncode != 0:
                tail = self._errors_of(name).read_bytes()[-MOST_REASON_CHARS:]
                self._missed(name, f"ended with {process.returncode}: {plain_text(tail).strip()}")

    def _wait(
        self, processes: Mapping[str, subprocess.Popen[bytes]], limit_s: float
    ) -> dict[str, str]:
        """Return why those had to be stopped that did not end, by name."""
        deadline, reason = time.monotonic() + limit_s, f"it took more than {limit_s:.0f} s"
        while running := [name for name, process in processes.items() if process.poll() is None]:
            failed = [name for name, process in processes.items() if process.returncode]
            if failed and deadline > time.monotonic() + GRACE_S:
                deadline = time.monotonic() + GRACE_S
                reason = f"it waited for {', '.join(failed)}, which failed"
            if time.monotonic() > deadline:
                return dict.fromkeys(running, reason)
            self._look()
            time.sleep(POLL_S)
        return {}

    def _look(self) -> None:
        """Keep each GPU's state where it draws the most power so far."""
        with contextlib.suppress(EvaluatorError):
            now = gpus.states(self.host.gpus)
            before = self.states or now
            self.states = tuple(
                max(pair, key=lambda own: own.power_w) for pair in zip(before, now, strict=True)
            )

    def _missed(self, name: str, reason: str) -> None:
        what = name if name == PEERS else f"rank {name}"
        self.said.append(Said(missed=Missed(what=what, reason=reason)))

    def _errors_of(self, name: str) -> Path:
        return self.folder / f"{name}.errors"


def calibrate(world_size: int) -> Calibration:
    """Measure the first `world_size` GPUs that this host offers, while nobody judges on them.

    Raises EvaluatorError where there are too few, others use them, or nothing could be measured.
    """
    offered = gpus.offered()
    if not 2 <= world_size <= len(offered):
        raise EvaluatorError(
            f"a calibration of {world_size} GPUs is not possible: it takes 2 or more, and this host"
            f" offers {len(offered)}"
        )
    began = time.monotonic()
    threads = max(1, (os.cpu_count() or 1) // world_size)
    host = Host(gpus=offered[:world_size], threads=threads)
    crew = Crew(folder=Path(own_folder()), host=host)
    try:
        with host.alone():
            crew.run(programs([PEERS], crew), PEERS_LIMIT_S)
            crew.run(programs(map(str, range(world_size)), crew), RANKS_LIMIT_S)
    finally:
        remove_folder(str(crew.folder))
    return summary(crew, wall_s=time.monotonic() - began)


def summary(crew: Crew, *, wall_s: float) -> Calibration:
    """Summarise what the processes said. Raises EvaluatorError where nothing was found."""
    found = merged(said.found for said in crew.said if said.found is not None)
    missed = {said.missed.what: said.missed.reason for said in crew.said if said.missed is not None}
    if not found:
        raise EvaluatorError(f"nothing could be measured: {missed}")
    names = tuple(gpu.name for gpu in crew.host.gpus)
    limits = limits_of(names[0]) if len(set(names)) == 1 else None
    return Calibration(
        world_size=len(names),
        gpus=names,
        measurements=tuple(measured(own, limits) for own in found),
        unmeasured=missed,
        states=crew.states,
        driver=gpus.driver_version(),
        versions={name: text for said in crew.said for name, text in said.versions.items()},
        settings={name: crew.host.settings[name] for name in MULTICAST_OFF},
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        wall_s=round(wall_s, 1),
        method=METHOD,
    )


def lines_of(path: Path) -> list[Said]:
    """Read what a process said; the last line of one that was killed may be torn."""
    said = []
    if path.exists():
        for line in path.read_text().splitlines():
            with contextlib.suppress(ValueError):
                said.append(decode(Said, json.loads(line)))
    return said


def programs(names: Iterable[str], crew: Crew) -> dict[str, list[str]]:
    """Return what to run for PEERS or a rank, by name."""
    arguments = [str(len(crew.host.gpus)), str(crew.folder), str(os.getpid())]
    program = [sys.executable, "-m", "evaluator.calibration.rank"]
    return {name: [*program, *arguments, name] for name in names}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it where it runs, and wait for it: nothing else may be measured beside it."""
    process.kill()
    process.wait()
