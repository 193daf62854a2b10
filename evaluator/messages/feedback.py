"""Says to a model what the judge found, and nothing that tells what inputs or answers were.

Only what is named here passes. All of it is the judge's own, but for two texts of the kernel: the
line that shows a cause, with its fractions masked, and, where a kernel was not even imported, the
end of its log, as it has been given no input by then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from evaluator.messages.job import Placement
from evaluator.messages.profile import RankTimeline
from evaluator.messages.report import Phase, Report, Trial, Verdict
from evaluator.messages.text import plain_text

EVIDENCE_CHARS, LOG_CHARS, TOP_EVENTS, MOST_LINES = 300, 3000, 5, 32
TIMES = ("kernel_us", "baseline_us", "speedup", "speedup_low", "speedup_high")
NO_PROFILE = "there is no profile: only right kernels have one"
# A number with a fraction or an exponent, as elements are printed; lengths and line numbers stay.
_VALUE = re.compile(
    r"(?:[-+]?[\d.]{1,40}\s{0,9}[,;\s]\s{0,9}){4,}[-+]?[\d.]{1,40}"  # longer than any shape
    r"|[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE][-+]?\d))(?:[eE][-+]?\d+)?"
    r"|\b(?:0x)?[0-9a-fA-F]{12,}\b"
)


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """Holds what a model is shown: at once, and when it asks for the profile."""

    verdict: str
    text: str
    profile: str
    speedup: float | None = None
    speedup_low: float | None = None

    @property
    def is_right(self) -> bool:
        """Return whether every output was right."""
        return self.verdict == "ok"

    @property
    def is_fast(self) -> bool:
        """Return whether it is faster than the reference, with its whole interval."""
        return self.is_right and self.speedup_low is not None and self.speedup_low > 1.0


def feedback(report: Report, *, is_too_busy: bool = False) -> Feedback:
    """Return the feedback on a report; `is_too_busy` if this host could take no times."""
    is_right = report.verdict is Verdict.OK
    lines = [f"verdict: {report.verdict}{', not timed' if is_too_busy and is_right else ''}"]
    if is_too_busy:
        lines.append("timing: none, because this host is busy; the kernel may be timed later")
    elif report.placement is Placement.SHARED:
        lines.append("placement: all ranks share a device, so nothing is timed")
    if report.phase is not None:
        lines.append(f"phase: {report.phase}")
    if report.cause:
        lines.append(f"cause: {_masked(report.cause)}")
    if report.ranks:
        lines.append(f"ranks: {', '.join(map(str, report.ranks))}")
    lines += [*_what_failed(report), *islice(_errors(report.trials), MOST_LINES)]
    lines += _times(report)
    if report.flags:
        lines.append(f"flags: {', '.join(_masked(flag) for flag in report.flags)}")
    return Feedback(
        verdict=str(report.verdict),
        text="\n".join(lines),
        profile=_profile(report),
        speedup=report.timing.speedup if report.timing else None,
        speedup_low=report.timing.speedup_low if report.timing else None,
    )


def training_report(report: Report) -> dict[str, Any]:
    """Return the part of a report for training: numbers and the feedback, no log, and no word of a
    kernel that may have been given inputs."""
    said, timing, bounds = feedback(report), report.timing, report.floors
    return {
        "verdict": said.verdict,
        "phase": None if report.phase is None else str(report.phase),
        "ranks": list(report.ranks),
        "flags": list(report.flags),
        **{name: getattr(timing, name) if timing else None for name in TIMES},
        "bound_us": bounds.bound_us if bounds else None,
        "limiter": bounds.limiter if bounds else None,
        "utilisation": report.utilisation,
        "trials": len(report.trials),
        "trials_passed": sum(trial.passed for trial in report.trials),
        "phase_s": dict(report.phase_s),
        "judge_version": report.judge_version,
        "feedback": said.text,
        "profile": said.profile,
    }


def not_judged(verdict: Verdict, why: str) -> Feedback:
    """Return what may be said of a kernel that no judge has run."""
    text = f"verdict: {verdict}\nevidence: {_masked(why)}"
    return Feedback(verdict=str(verdict), text=text, profile=NO_PROFILE)


def _what_failed(report: Report) -> Iterable[str]:
    """Yield the line that shows a failure; where a comparison failed, counts and errors say it."""
    failed = [trial for trial in report.trials if not trial.passed]
    if report.timing is None and not failed:
        yield f"evidence: {_masked(report.evidence or report.message)}"
    if report.phase is Phase.BUILD:
        told = sorted(report.logs, key=lambda log: (log.rank not in report.ranks, log.rank))
        for log in told[:1]:
            yield f"end of the log of rank {log.rank}:\n{plain_text(log.text[-LOG_CHARS:])}"


def _errors(trials: Sequence[Trial]) -> Iterable[str]:
    """Yield for each rank and output that is wrong which share, and by how many tolerances."""
    largest = [c.max_error for t in trials for c in t.checks if c.max_error is not None]
    if largest:
        yield f"largest error: {max(largest):.2g} tolerances (1 is the limit, but for outliers)"
    for trial in trials:
        for check in trial.checks:
            if trial.passed or not check.mismatched:
                continue
            share = 100 * check.mismatched / check.elements
            error = (
                "" if check.max_error is None else f", up to {check.max_error:.2g} tolerances off"
            )
            where = f"{plain_text(check.output, 60)} of rank {check.rank}"
            yield f"wrong: {share:.3g} % of {where} ({check.verdict}){error}"


def _times(report: Report) -> Iterable[str]:
    timing, bounds = report.timing, report.floors
    if timing is not None:
        yield f"time of a call: {timing.kernel_us:.1f} us, reference {timing.baseline_us:.1f} us"
        interval = f"{timing.speedup_low:.2f} to {timing.speedup_high:.2f}"
        yield f"speedup: {timing.speedup:.2f}x (95 % interval {interval})"
    if bounds is not None:
        yield f"bound: {bounds.bound_us:.1f} us, by {bounds.limiter}"
    if report.utilisation is not None:
        yield f"utilisation: {100 * report.utilisation:.0f} % of what the hardware allows"


def _profile(report: Report) -> str:
    """Return a digest of the timelines: per rank what took longest, overlap, idle; mechanisms."""
    parts = [_rank_digest(timeline) for timeline in report.timelines]
    if report.mechanisms:
        found = sorted({f"{one.tag} ({one.evidence})" for one in report.mechanisms})
        parts.append(f"mechanisms: {', '.join(found)}")
    parts += _times(report)
    return "\n".join(parts) if report.timelines else NO_PROFILE


def _rank_digest(timeline: RankTimeline) -> str:
    sums: dict[str, float] = {}
    for event in timeline.events:
        name = f"{event.kind} {_masked(event.name)[:80]}"
        sums[name] = sums.get(name, 0.0) + event.duration_us
    top = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:TOP_EVENTS]
    return (
        f"rank {timeline.rank}: {timeline.span_us:.0f} us of a few calls, compute "
        f"{timeline.compute_us:.0f}, communication {timeline.communication_us:.0f}, both at once "
        f"{timeline.overlap_us:.0f}, of unknown kind {timeline.unknown_us:.0f}, idle "
        f"{timeline.idle_us:.0f} us; longest: "
        + "; ".join(f"{name} {time_us:.0f} us" for name, time_us in top)
    )


def _masked(text: str) -> str:
    """Return one line without values: a kernel may print its inputs where it fails."""
    return _VALUE.sub("#", " ".join(plain_text(text, EVIDENCE_CHARS).split()))
