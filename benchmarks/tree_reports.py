"""Makes lines for `import_reports` of what one_gpu.py found of published trees of kernels.

`tree_reports.py OUT.jsonl.gz REPORTS.jsonl ... --repository github.com/owner/name --commit HEX`

REPORTS are what `one_gpu.py --reports` wrote of trees' files, over as many calls as it took: the
last report that says something of a kernel is taken. Their sources stay where they are: lines say
where, by commit, path and SHA-256, and nothing that ranks printed is kept, as it may quote them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evaluator import Verdict

PUBLISHED = Path(__file__).resolve().parent.parent / "fixtures" / "published" / "pkb-results.json"
# Kernels of the trees were written for another form of these: outputs in lists, a sample at random,
# nothing to do without a group.
CHANGED_SINCE = (
    *("moe_token_preprocess", "gnn_neighbor_sampling"),
    *("ulysses_gather_seq_scatter_heads", "ulysses_gather_heads_scatter_seq"),
)
NOTES = (
    "The tree {tree} of {repository}; which of a model's samples it is, is not said. Judged with "
    "four ranks on one GPU: {count} files. Not judged: what needs NVLink multicast or more than "
    "that GPU had, deadlocks seen only while others were judged beside, and what was written for "
    "an older form of problems 26, 36, 37 and 64."
)
# Beside others on the same GPU a rendezvous can take longer than a standstill may.
UNCERTAIN = (Verdict.TIMEOUT, Verdict.HOST_UNSUPPORTED)


def telling(lines: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return by tree the last line of each kernel whose report says something of it."""
    last: dict[str, dict[str, Any]] = {}
    for line in lines:
        report = line["report"]
        verdict = Verdict(report["verdict"])
        if verdict not in UNCERTAIN and verdict.counts and report["problem"] not in CHANGED_SINCE:
            last[line["path"]] = line
    trees = defaultdict(list)
    for path, line in sorted(last.items()):
        trees[PurePosixPath(path).parent.name].append(line)
    return trees


def hardware_of(report: dict[str, Any]) -> str:
    """Return `h100x1` for a report of `1 x NVIDIA H100 80GB HBM3`."""
    count, _, _, kind, *_ = report["environment"]["hardware"].split()
    return f"{kind.lower()}x{count}"


def line_of(found: dict[str, Any], notes: str, origin: dict[str, object]) -> dict[str, Any]:
    """Return what `import_reports` reads of a kernel whose source is elsewhere."""
    from leaderboard.models.model_names import known_as, model_slug
    from leaderboard.submissions.trees import tree_of

    tree = tree_of(PurePosixPath(found["path"]))
    assert tree is not None
    assert tree.model is not None
    names = json.loads(PUBLISHED.read_text())["vendors"]
    shown = {model_slug(name): name for name in names}
    report = {**found["report"], "logs": []}
    place = {"digest": report["kernel_digest"], "size_bytes": found["size_bytes"]}
    return {
        "model": shown.get(model_slug(tree.model), known_as(tree.model)),
        "vendor": tree.vendor,
        "notes": notes,
        "baseline": False,
        "k": 1,
        "harness": "zero-shot",
        "problem": report["problem"],
        "attempt": 1,
        "step": 1,
        "backend": tree.backend,
        "source": None,
        "origin": {**place, **origin, "path": found["path"]},
        "job": {"hardware": hardware_of(report), **report["setting"]},
        "judged_at": found["judged_at"],
        "report": report,
    }


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
    texts = []
    for tree, found in telling(lines).items():
        notes = NOTES.format(tree=tree, repository=given.repository, count=len(found))
        texts += [json.dumps(line_of(one, notes, origin)) for one in found]
        print(f"{tree}: {len(found)} kernels")
    given.out.write_bytes(gzip.compress("".join(f"{text}\n" for text in texts).encode(), mtime=0))


if __name__ == "__main__":
    main()
