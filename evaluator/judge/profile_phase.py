"""Runs the profile phase: what a rank shows of a few calls, once the verdict is known. Never
scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluator.buffers.control_page import Command
from evaluator.judge.run_context import RunContext
from evaluator.messages.faults import Fault
from evaluator.messages.profile import EventKind, RankTimeline
from evaluator.messages.report import Verdict
from evaluator.profiling.mechanism import mechanisms, reaches_peers, read_instructions, uses_nccl
from evaluator.profiling.timeline import align, read_timeline

KEPT_EVENTS = 400


def profile(context: RunContext) -> None:
    """Fill in timelines and mechanisms; a kernel that fails here has none, and is as good."""
    source = context.job.source
    raws: list[bytes] = []
    code = b""
    try:
        raws = context.submission.ask(Command.PROFILE, context.oracle.warm_up_calls)
        code = context.submission.ask(Command.DEVICE_CODE)[0]
    except Fault as fault:
        if fault.verdict is Verdict.TIMEOUT:
            context.findings.flags.append("profile_hung")
    unknown = EventKind.KERNEL if reaches_peers(source) else EventKind.COMPUTE
    read = [read_timeline(raw, rank, unknown=unknown) for rank, raw in enumerate(raws)]
    timelines = align([timeline for timeline in read if timeline is not None])
    findings = context.findings
    findings.mechanisms = mechanisms(source, read_instructions(code) or {}, timelines)
    findings.timelines = tuple(_shortened(timelines))
    if uses_nccl(timelines):
        findings.flags.append("uses_nccl")


def _shortened(timelines: Sequence[RankTimeline]) -> list[RankTimeline]:
    return [
        replace(
            timeline,
            events=timeline.events[:KEPT_EVENTS],
            dropped_events=timeline.dropped_events + len(timeline.events[KEPT_EVENTS:]),
        )
        for timeline in timelines
    ]
