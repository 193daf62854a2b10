"""Decides who may read a source that its submitter withholds, and takes away what quotes it.

A source is stored once, however often it is submitted. A viewer may read it where a public
submission does not withhold it, or one is theirs. An unlisted one shows its own pages only. Of the
runs of a source that they may not read viewers see what the judge found in its own words: not what
ranks printed, nor what a compiler quoted, nor the names of kernels and profiled ranges, as these
names stand in the source.
"""

from __future__ import annotations

import copy
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, Q

from leaderboard.kit.json_types import JsonDict, Report
from leaderboard.metrics.failures import cause_in_words
from leaderboard.metrics.verdicts import words
from leaderboard.models import Decline, Kernel, Run, Submission, Visibility
from leaderboard.models.teams import Viewer

WITHHELD = "source withheld by its submitter"
# What the judge says of these quotes nothing of a submission. All others may hold what a rank
# claimed, a line that a compiler or a traceback showed, or a stack.
OWN_WORDS = frozenset(
    {
        *("ok", "faster_than_light", "output_mismatch", "nonfinite_output", "late_output"),
        *("input_contract_broken", "cancelled"),
    }
)
NOTHING: JsonDict = {"evidence": None, "logs": [], "flag_lines": {}}
# As the judge writes how often a trace has an event, before the name of the first.
_TIMES = re.compile(r"(\d{1,20}) x ")


def open_to(viewer: Viewer, digests: Iterable[str]) -> set[str]:
    """Return those of these sources whose text a viewer may read whoever withholds it."""
    seen = Submission.objects.opening_sources_for(viewer)
    uses = Kernel.objects.filter(source__in=set(digests), submission__in=seen)
    return set(uses.order_by().values_list("source_id", flat=True).distinct())


def closed_to(viewer: Viewer, kernels: Iterable[Kernel]) -> set[str]:
    """Return the digests of those of these kernels, each of a submission that the viewer may see,
    whose text they may not read. Asks who that is only where one is withheld by all."""
    withheld = withheld_by_all(kernels)
    return withheld - open_to(viewer, withheld) if withheld else set()


def disclosed(uses: Sequence[Kernel]) -> list[Kernel]:
    """Return the public ones of the uses of a source; without any, the unlisted ones."""
    for visibility in (Visibility.PUBLIC, Visibility.UNLISTED):
        if found := [use for use in uses if use.submission.visibility == visibility]:
            return found
    return []


def withheld_by_all(kernels: Iterable[Kernel]) -> set[str]:
    """Return the digests of those that every one of these with the same source withholds."""
    withheld: set[str] = set()
    others: set[str] = set()
    for one in kernels:
        (withheld if one.submission.withholds_source else others).add(one.source_id)
    return withheld - others


def is_told(viewer: Viewer, submission: Submission) -> bool:
    """Return whether a viewer who may see a submission may read all that was said in making it."""
    if not submission.withholds_source:
        return True
    return Submission.objects.with_sources_for(viewer).filter(pk=submission.pk).exists()


def told_run(viewer: Viewer, run: Run) -> Run:
    """Return a run as a viewer may read it."""
    return told_runs(viewer, [run])[0]


def told_runs(viewer: Viewer, runs: Sequence[Run]) -> list[Run]:
    """Return runs, each with its kernel and submission, as a viewer may read them."""
    closed = closed_to(viewer, [run.kernel for run in runs])
    return [hushed(run) if run.kernel.source_id in closed else run for run in runs]


def declines_told(viewer: Viewer, run: Run) -> list[JsonDict]:
    """Return the hosts that declined a run, without what they quote where it is withheld."""
    found = Decline.objects.told(run)
    is_closed = bool(found and closed_to(viewer, [run.kernel]))
    return [{**one, "reason": WITHHELD} for one in found] if is_closed else found


def hushed(run: Run) -> Run:
    """Return a copy of a run, never to be saved, without what may quote its source."""
    made = copy.copy(run)
    is_read = "report_packed" not in run.get_deferred_fields()
    report = run.report if is_read else None
    made.message = hushed_message(run.verdict, run.cause, run.message)
    made.evidence = None
    made.last_error = ""
    # A report that was not read is not to be read behind it.
    made.report_packed = None
    if report is not None:
        made.report_packed = zlib.compress(json.dumps(hushed_report(report)).encode(), 1)
    return made


def hushed_report(report: Report) -> JsonDict:
    """Return a report without what may quote the source; `withheld` says so."""
    message = hushed_message(report["verdict"], report.get("cause"), report["message"])
    made = {**report, **NOTHING, "message": message, "withheld": WITHHELD}
    if "mechanisms" in report:
        made["mechanisms"] = [_hushed_mechanism(one) for one in report["mechanisms"]]
    if "timelines" in report:
        made["timelines"] = _hushed_timelines(report["timelines"])
    return made


def _hushed_mechanism(found: Report) -> JsonDict:
    """Return what shows a mechanism without the text or the name that does; counts stay."""
    if found["evidence"] == "sass":
        return {**found}
    times = _TIMES.match(found["detail"]) if found["evidence"] == "trace" else None
    return {**found, "detail": f"{times[1]} events" if times else ""}


def _hushed_timelines(timelines: Sequence[Report]) -> list[JsonDict]:
    """Return timelines whose events are called by their kind, with a number for each name: the same
    one on every rank. A name is that of a function, or of a range, in the source."""
    called: dict[tuple[str, str], str] = {}
    counts: Counter[str] = Counter()

    def renamed(event: Report) -> JsonDict:
        kind, name = event["kind"], event["name"]
        if (kind, name) not in called:
            counts[kind] += 1
            called[kind, name] = f"{kind} {counts[kind]}"
        return {**event, "name": called[kind, name]}

    return [{**one, "events": [renamed(event) for event in one["events"]]} for one in timelines]


def hushed_message(verdict: str | None, cause: str | None, message: str) -> str:
    """Return the judge's own words: its sentence where that quotes nothing, else verdict and
    cause."""
    if not message or verdict in OWN_WORDS:
        return message
    means = ": ".join(filter(None, (words(verdict or ""), cause_in_words("", cause, None))))
    return f"{means} (what it says is withheld, as is its source)"


def is_closed_to_all() -> Q:
    """Return the condition of runs whose source the public may not read."""
    public = Submission.objects.opening_sources_for(AnonymousUser())
    uses = Kernel.objects.filter(source=OuterRef("kernel__source"), submission__in=public)
    return Q(kernel__submission__withholds_source=True) & ~Q(Exists(uses))
