"""Says of a kernel of a submission why it failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leaderboard.metrics.failures import cause_in_words
from leaderboard.model_pages.submission_kernels import JudgedKernel
from leaderboard.models import Submission
from leaderboard.models.teams import Viewer
from leaderboard.read_model.withholding import hushed_message, open_to


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


def told_kernels(
    viewer: Viewer, found: Submission, kernels: Sequence[JudgedKernel]
) -> Iterator[JudgedKernel]:
    """Yield the kernels of a submission without what quotes a source that a viewer may not read."""
    readable = open_to(viewer, (one.source for one in kernels)) if found.withholds_source else None
    for one in kernels:
        if readable is None or one.source in readable:
            yield one
        else:
            message = hushed_message(one.verdict, one.cause, one.message or "")
            yield one._replace(message=message or None, evidence=None)
