"""Lines for the site's `import_reports`: kernels with the reports that were made of them here."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluator.host.gpus import offered
from evaluator.messages.codec import encode
from evaluator.messages.job import Device, Job
from evaluator.messages.report import Report
from tests.evaluator.kernel_files import KernelFile, all_in

JUDGED_ON = ("world_size", "size", "dtype", "profile", "device", "placement")


@dataclass(frozen=True, kw_only=True)
class Author:
    """Whose kernels these are: one submission. `k` is the most attempts at a problem."""

    model: str
    vendor: str
    notes: str
    baseline: bool
    k: int
    harness: str = "human"


REFERENCES = Author(
    model="PyTorch + NCCL",
    vendor="PyTorch",
    notes="The references themselves, judged as submissions.",
    baseline=True,
    k=1,
)

HOUSE = Author(
    model="House kernels",
    vendor="PKB Leaderboard",
    notes="Kernels of this site, that show how one would write each problem.",
    baseline=True,
    k=1,
)


def by_hand() -> tuple[Author, dict[Path, int]]:
    """The author of the tests' honest kernels, and which attempt at its problem each of them is.

    The same whichever of them are judged. Kernels that sleep are for the judge, not for readers.
    """
    count: Counter[str] = Counter()
    attempts: dict[Path, int] = {}
    for kernel in sorted(all_in("gpu/honest"), key=_turn):
        if not kernel.path.stem.startswith("sleeps"):
            count[kernel.problem] += 1
            attempts[kernel.path] = count[kernel.problem]
    author = Author(
        model="Hand-written kernels",
        vendor="PKB Leaderboard",
        notes="Kernels written by hand to test the judge.",
        baseline=False,
        k=max(count.values()),
    )
    return author, attempts


def _turn(kernel: KernelFile) -> tuple[bool, str]:
    return kernel.path.stem != "nccl_all_reduce", kernel.path.stem


def read(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield the lines of files, one file after the other."""
    for path in paths:
        with gzip.open(path, "rt") as lines:
            yield from map(json.loads, lines)


def append(path: Path, author: Author, attempt: int, job: Job, report: Report) -> None:
    """Add a line, as a gzip member of its own, so that an end at any moment loses none before it.

    A report that says nothing of the kernel is left out.
    """
    if report.verdict.counts:
        text = json.dumps(line(author, attempt, job, report))
        with path.open("ab") as file:
            file.write(gzip.compress(f"{text}\n".encode(), mtime=0))


def line(author: Author, attempt: int, job: Job, report: Report) -> dict[str, Any]:
    settings = {name: encode(getattr(job, name)) for name in JUDGED_ON}
    return record(
        author,
        {"attempt": attempt, "step": 1, "backend": job.backend.value, "source": job.source},
        {"hardware": hardware_class(job.device), **settings},
        now(),
        encode(report),
    )


def record(
    author: Author,
    kernel: dict[str, Any],
    job: dict[str, Any],
    judged_at: str,
    report: dict[str, Any],
) -> dict[str, Any]:
    """A line; `kernel` has its attempt, step, backend, and source or where that is."""
    return {
        **encode(author),
        "problem": report["problem"],
        **kernel,
        "job": job,
        "judged_at": judged_at,
        "report": report,
    }


def now() -> str:
    """The moment, as lines have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def hardware_class(device: Device) -> str:
    """What a worker of this host would have as PKB_QUEUE, such as `h200x2`."""
    if named := os.environ.get("PKB_QUEUE"):
        return named
    if device is Device.CPU:
        return "cpu"
    gpus = offered()
    return class_of(gpus[0].name, len(gpus))


def class_of(name: str, count: int) -> str:
    """`h100x1` for one `NVIDIA H100 80GB HBM3`."""
    return f"{name.lower().removeprefix('nvidia ').split()[0]}x{count}"
