"""Shows what ranks printed, the tail of each log first. All of it is written by submitters."""

from __future__ import annotations

import re

from leaderboard.kit.json_types import Report

MOST_LINES = 30
MOST_CHARS = 4_000

# An exception with its stack, the stacks of a rank that was killed, the collective it waited in.
_END = re.compile(
    r"^(?:Traceback \(most recent call last\)|(?:Current thread|Thread) 0x[0-9a-f]{1,20}\b"
    r"|Fatal Python error: |last collective: )",
    re.MULTILINE,
)

# A frame of a traceback or of a stack, with the lines of code below it.
_FRAME = re.compile(r'^  File "([^"\n]{0,600})", line \S{1,9},? in [^\n]*(?:\n    [^\n]*)*$', re.M)
# What runs a submission: the judge's own modules, torch's and Python's machinery of imports.
_RUNNERS = re.compile(r"/evaluator/|/problems/running/|^<frozen |/importlib/|/runpy\.py$")


def folded(text: str) -> str:
    """Return a log in which one line stands for frames in a row that are the judge's, not the
    submission's."""
    made: list[str] = []
    ours, end = 0, 0

    def close() -> None:
        if ours:
            made.append(f"  … {ours} frame{'' if ours == 1 else 's'} of the judge's runner")

    for frame in _FRAME.finditer(text):
        between = text[end : frame.start()].strip("\n")
        if between or not _RUNNERS.search(frame[1]):
            close()
            ours = 0
        if between:
            made.append(between)
        if _RUNNERS.search(frame[1]):
            ours += 1
        else:
            made.append(frame[0])
        end = frame.end()
    close()
    rest = text[end:].strip("\n")
    return "\n".join([*made, rest] if rest else made)


def log_tail(text: str) -> str | None:
    """Return a log from its last exception or its first stack on, without frames of the judge;
    None where it tells no end.

    Stacks come one a thread, so the first counts; of exceptions the last one does.
    """
    found = list(_END.finditer(text))
    raised = [match for match in found if match[0].startswith("Traceback")]
    first = raised[-1] if raised else next(iter(found), None)
    if first is None:
        return None
    lines = folded(text[first.start() :][:MOST_CHARS]).splitlines()
    return "\n".join(lines[:MOST_LINES])


def log_rows(report: Report) -> list[dict[str, object]]:
    """Return a row for each rank that printed; the first is open where something went wrong."""
    failed = report.get("verdict") != "ok"
    printed = [log for log in report.get("logs", ()) if log["text"]]
    return [
        {
            "who": f"Rank {log['rank']}" if log["rank"] >= 0 else "Sandbox",
            "text": log["text"],
            "dropped_bytes": log["dropped_bytes"],
            "last": log_tail(log["text"]) if failed else None,
            "open": failed and i == 0,
        }
        for i, log in enumerate(printed)
    ]
