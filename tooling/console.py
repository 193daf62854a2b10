"""Print a line per step with its time, and run commands whose output a log keeps."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tooling import places

TAIL_LINES = 25


class Failure(Exception):
    """Raised for something a person has to mend; the text says what and how."""


@contextmanager
def step(name: str) -> Iterator[list[str]]:
    """Print `name`, what the block appended to the list, and how long the block took."""
    started_s = time.monotonic()
    notes: list[str] = []
    try:
        yield notes
    except BaseException:
        print(f"  {name:<14} failed after {time.monotonic() - started_s:.1f} s", flush=True)
        raise
    print(f"  {name:<14} {', '.join(notes):<72} {time.monotonic() - started_s:6.1f} s", flush=True)


def run_logged(name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    """Run a command with its output in `<state>/log/<name>.log`; raises Failure with its tail."""
    places.logs().mkdir(parents=True, exist_ok=True)
    log = places.logs() / f"{name}.log"
    with log.open("wb") as output:
        finished = subprocess.run(
            command,
            cwd=places.ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if finished.returncode:
        status = finished.returncode
        raise Failure(f"`{' '.join(command)}` ended with status {status}:\n{tail(log)}")


def tail(log: Path) -> str:
    """Return the last lines of a log, and where the rest stands."""
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    return "\n".join([*lines, f"(all of it: {log})"])
