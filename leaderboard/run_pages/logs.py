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


def log_tail(text: str) -> str | None:
    """Return a log from its last exception or its first stack on; None where it tells no end.

    Stacks come one a thread, so the first counts; of exceptions the last one does.
    """
    found = list(_END.finditer(text))
    raised = [match for match in found if match[0].startswith("Traceback")]
    first = raised[-1] if raised else next(iter(found), None)
    if first is None:
        return None
    lines = text[first.start() :][:MOST_CHARS].splitlines()
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
