"""Makes lines for `import_reports` of what one_gpu.py found of published trees of kernels.

`tree_reports.py OUT.jsonl.gz REPORTS.jsonl ... --repository github.com/owner/name --commit HEX`

REPORTS are what `one_gpu.py --reports` wrote of trees' files, over as many calls as it took: of a
kernel the last report that says something of it is taken, for each profile. What OUT holds of
others stays. Sources stay where they are: lines say where, by commit, path and SHA-256, and nothing
that ranks printed is kept, as it may quote them.
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

from one_gpu import is_settled
from reports_file import Author, class_of, record

from evaluator import Verdict

PUBLISHED = Path(__file__).resolve().parent.parent / "fixtures" / "published" / "pkb-results.json"
NOTES = (
    "The tree {tree} of {repository}; which of a model's samples it is, is not said. Judged with "
    "four ranks on one GPU: {count} files. Not judged: what needs NVLink multicast or more than "
    "that GPU had, and deadlocks seen only while others were judged beside. Kernels for problems "
    "26, 36, 37 and 64 were written for an older form of these tasks, and do not count."
)


def telling(lines: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return by tree the last line of each kernel and profile whose report says something of it."""
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        report = line["report"]
        if is_settled({**report, **line}) and Verdict(report["verdict"]).counts:
            last[line["path"], report["setting"]["profile"]] = line
    trees = defaultdict(list)
    for (path, _), line in sorted(last.items()):
        trees[PurePosixPath(path).parent.name].append(line)
    return trees


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
    """Yield lines of all trees, of a kernel and profile the new one; notes count a tree's files."""
    known = {(line["origin"]["path"], line["job"]["profile"]): line for line in [*old, *new]}
    paths = {path for path, _ in known}
    files = Counter(PurePosixPath(path).parent.name for path in paths)
    for (path, _), line in sorted(known.items()):
        tree, repository = PurePosixPath(path).parent.name, line["origin"]["repository"]
        notes = NOTES.format(tree=tree, repository=repository, count=files[tree])
        yield {**line, "notes": notes}


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
    texts = map(json.dumps, together(map(json.loads, old), new))
    given.out.write_bytes(gzip.compress("".join(f"{text}\n" for text in texts).encode(), mtime=0))


if __name__ == "__main__":
    main()
