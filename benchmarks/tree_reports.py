"""Makes lines for `import_reports` of what judge_kernels.py found of published trees of kernels.

`tree_reports.py OUT.jsonl.gz REPORTS.jsonl ... --repository github.com/owner/name --commit HEX`

REPORTS are what `judge_kernels.py --reports` wrote of trees' files, over as many calls as it took:
of a kernel the last report that says something of it is taken, for each setting. What OUT holds of
others stays, if it is of today's problem. Sources stay where they are: lines say where, by commit,
path and SHA-256, and nothing that ranks printed is kept, as it may quote them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judged_lines import is_settled
from reports_file import Author, class_of, record

import problems
from evaluator import Verdict

PUBLISHED = Path(__file__).resolve().parent.parent / "fixtures" / "published" / "pkb-results.json"
NOTES = (
    "The tree {tree} of {repository}; which of a model's samples it is, is not said. Checked with "
    "all ranks on one GPU: {checked} files; with a GPU for each rank, of those that were right, "
    "{timed}. Not judged: what needs NVLink multicast or more than that GPU had, and what ran out "
    "of time beside others. Kernels for problems 26, 36, 37 and 64 were written for an older form "
    "of these tasks, and do not count."
)


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
