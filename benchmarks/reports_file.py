"""Lines for the site's `import_reports`: kernels with the reports that were made of them here.

`reports_file.py OUT.jsonl.gz REPORTS.jsonl ... --repository github.com/owner/name --commit HEX`

As a program it makes lines of published trees of kernels. REPORTS are what `judge_kernels.py
--reports` wrote of trees' files, over as many calls as it took: of a kernel the last report that
says something of it is taken, for each setting. What OUT holds of others stays, if it is of today's
problem. Sources stay where they are: lines say where, by commit, path and SHA-256, and nothing that
ranks printed is kept, as it may quote them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judged_lines import is_settled

import problems
from evaluator.host.gpus import offered
from evaluator.messages.codec import encode
from evaluator.messages.job import Device, Job
from evaluator.messages.report import Report, Verdict
from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator.kernel_files import KernelFile, all_in

PUBLISHED = REPOSITORY / "fixtures" / "published" / "pkb-results.json"
NOTES = (
    "The tree {tree} of {repository}; which of a model's samples it is, is not said. Checked with "
    "all ranks on one GPU: {checked} files; with a GPU for each rank, of those that were right, "
    "{timed}. Not judged: what needs NVLink multicast or more than that GPU had, and what ran out "
    "of time beside others. Kernels for problems 26, 36, 37 and 64 were written for an older form "
    "of these tasks, and do not count."
)
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


def keeper(path: Path | None, name: str, kernel: KernelFile) -> Callable[[Report], None]:
    """Make what puts the first report of an honest kernel into a file, if there is one."""
    author, attempts = by_hand()
    attempt = attempts.get(kernel.path)
    if path is None or attempt is None or name != f"honest/{kernel.path.stem}":
        return lambda report: None
    return lambda report: append(path, author, attempt, kernel.job, report)


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


def telling(lines: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return by tree the last line of each kernel and setting whose report says something of it."""
    last: dict[tuple[str, ...], dict[str, Any]] = {}
    for line in lines:
        report = line["report"]
        if is_settled({**report, **line}) and Verdict(report["verdict"]).counts:
            setting = {**report["setting"], "hardware": report["environment"]["hardware"]}
            last[line["path"], *_values(setting)] = line
    trees = defaultdict(list)
    for (path, *_), line in sorted(last.items()):
        trees[PurePosixPath(path).parent.name].append(line)
    return trees


def _values(setting: dict[str, Any]) -> Iterator[str]:
    return (str(setting[name]) for name in sorted(setting))


def lines_of(
    tree: str, found: Sequence[dict[str, Any]], origin: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield what `import_reports` reads of a tree whose sources are elsewhere."""
    from leaderboard.models.model_names import known_as, model_slug
    from leaderboard.submissions.trees import tree_of

    told = tree_of(PurePosixPath(tree, "kernel.py"))
    assert told is not None
    assert told.model is not None
    names = json.loads(PUBLISHED.read_text())["vendors"]
    shown = {model_slug(name): name for name in names}
    author = Author(
        model=shown.get(model_slug(told.model), known_as(told.model)),
        vendor=told.vendor or "",
        notes="",
        baseline=False,
        k=1,
        harness="zero-shot",
    )
    for one in found:
        report = {**one["report"], "logs": []}
        count, name = report["environment"]["hardware"].split(" x ", 1)
        digest = {"digest": report["kernel_digest"], "size_bytes": one["size_bytes"]}
        place = {**digest, **origin, "path": one["path"]}
        turn = {"attempt": 1, "step": 1, "backend": told.backend}
        kernel = {**turn, "source": None, "origin": place}
        job = {"hardware": class_of(name, int(count)), **report["setting"]}
        yield record(author, kernel, job, one["judged_at"], report)


def together(
    old: Iterable[dict[str, Any]], new: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield lines of all trees, of a kernel and setting the new one; notes count a tree's files."""
    known = {(line["origin"]["path"], *_values(line["job"])): line for line in [*old, *new]}
    places = {(line["origin"]["path"], line["job"]["placement"]) for line in known.values()}
    files = Counter((PurePosixPath(path).parent.name, how) for path, how in places)
    for (path, *_), line in sorted(known.items()):
        tree, repository = PurePosixPath(path).parent.name, line["origin"]["repository"]
        counts = {"checked": files[tree, "shared"], "timed": files[tree, "full"]}
        yield {**line, "notes": NOTES.format(tree=tree, repository=repository, **counts)}


def is_todays(line: dict[str, Any]) -> bool:
    """Return whether a line's report is of the problem as it is."""
    report = line["report"]
    return bool(report["problem_digest"] == problems.load(problems.find(report["problem"])).digest)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
    import django

    django.setup()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("reports", type=Path, nargs="+")
    parser.add_argument("--repository", required=True)
    parser.add_argument("--commit", required=True)
    given = parser.parse_args()
    origin = {"repository": given.repository, "commit": given.commit}
    lines = [json.loads(text) for path in given.reports for text in path.read_text().splitlines()]
    old = gzip.decompress(given.out.read_bytes()).splitlines() if given.out.exists() else []
    new: list[dict[str, Any]] = []
    for tree, found in telling(lines).items():
        new += lines_of(tree, found, origin)
        print(f"{tree}: {len(found)} reports")
    texts = map(json.dumps, together(filter(is_todays, map(json.loads, old)), new))
    given.out.write_bytes(gzip.compress("".join(f"{text}\n" for text in texts).encode(), mtime=0))


if __name__ == "__main__":
    main()
