"""Shows how bytes moved between GPUs by a report, and which lines of the source it names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from leaderboard.kit.json_types import Report
from leaderboard.metrics.mechanisms import mechanism_name
from leaderboard.metrics.verdicts import words
from leaderboard.run_pages.logs import log_tail

EVIDENCE = {"trace": "seen in the trace", "sass": "in the machine code", "source": "in the source"}
MOST_MARKS = 100

_AT_LINE = re.compile(r"line (\d{1,7}): ")
# As Python and as the judge name a line of the submission.
_BLAMED = re.compile(r"submission\.py(?:\", line| line) (\d{1,7})\b")


def mechanism_rows(report: Report) -> list[dict[str, object]]:
    """Return a row for each tag, with each kind of evidence for it."""
    rows: dict[str, list[dict[str, object]]] = {}
    for found in report.get("mechanisms", ()):
        at = _AT_LINE.match(found["detail"]) if found["evidence"] == "source" else None
        shown = {
            "kind": EVIDENCE.get(found["evidence"], words(found["evidence"])),
            "detail": found["detail"],
            "line": int(at[1]) if at else None,
        }
        rows.setdefault(found["tag"], []).append(shown)
    return [{"name": mechanism_name(tag), "evidence": shown} for tag, shown in rows.items()]


def source_marks(report: Report) -> dict[int, list[str]]:
    """Return what a report says of single lines, by number: flags and mechanisms that they show,
    and failures that name them."""
    marks: dict[int, list[str]] = {}
    for flag, lines in report.get("flag_lines", {}).items():
        for line in lines:
            _mark(marks, line, words(flag.removeprefix("static:")))
    for found in report.get("mechanisms", ()):
        at = _AT_LINE.match(found["detail"]) if found["evidence"] == "source" else None
        if at:
            _mark(marks, int(at[1]), mechanism_name(found["tag"]))
    if report.get("verdict", "ok") != "ok":
        for text in _failure_texts(report):
            for number in _BLAMED.findall(text):
                _mark(marks, int(number), "named by the failure")
    return dict(sorted(marks.items())[:MOST_MARKS])


def _failure_texts(report: Report) -> Iterable[str]:
    yield report.get("message") or ""
    yield report.get("evidence") or ""
    for log in report.get("logs", ()):
        yield log_tail(log["text"]) or ""


def _mark(marks: dict[int, list[str]], line: int, text: str) -> None:
    said = marks.setdefault(line, [])
    if text.casefold() not in map(str.casefold, said):
        said.append(text)
