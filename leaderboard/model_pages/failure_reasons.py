"""Says of a kernel of a submission why it failed."""

from __future__ import annotations

from leaderboard.metrics.failures import cause_in_words
from leaderboard.model_pages.submission_kernels import JudgedKernel


def why_failed(one: JudgedKernel) -> dict[str, str]:
    """Return what a failure is told by: its cause in words, the judge's sentence, and the first
    line of the evidence where that says something else. All empty where it did not fail."""
    if one.verdict in (None, "ok"):
        return {"cause": "", "message": "", "line": ""}
    message, line = one.message or "", (one.evidence or "").partition("\n")[0].strip()
    return {
        "cause": cause_in_words(one.verdict, one.cause, one.evidence),
        "message": message,
        "line": "" if line in message else line,
    }
