"""Collects what a run finds, and makes the report of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evaluator import __version__
from evaluator.diagnosis.diagnose import (
    Diagnosis,
    flags_of,
    refine,
    sentence,
    unblamed,
    with_kernel,
)
from evaluator.diagnosis.interpreter import checkable
from evaluator.diagnosis.scan import lines_of
from evaluator.messages.codec import encode
from evaluator.messages.faults import Fault
from evaluator.messages.job import Device, Job, Placement
from evaluator.messages.profile import Mechanism, RankTimeline
from evaluator.messages.report import (
    MAX_REPORT_BYTES,
    GpuState,
    Phase,
    RankLog,
    Report,
    Timing,
    Trial,
    Verdict,
)
from evaluator.messages.roofline_bounds import RooflineBounds
from evaluator.sandbox.paths import neutral


@dataclass(kw_only=True)
class Findings:
    """Holds what is known so far; a run that ends early keeps it."""

    trials: list[Trial] = field(default_factory=list)
    timing: Timing | None = None
    flags: list[str] = field(default_factory=list)
    phase: Phase = Phase.BUILD
    phase_s: dict[str, float] = field(default_factory=dict)
    panel_s: Mapping[str, float] = field(default_factory=dict)
    logs: tuple[RankLog, ...] = ()
    gpus: tuple[GpuState, ...] = ()
    bounds: RooflineBounds | None = None
    timelines: tuple[RankTimeline, ...] = ()
    mechanisms: tuple[Mechanism, ...] = ()

    def report(self, job: Job, fault: Fault | None, known: dict[str, Any]) -> Report:
        """Make the report; `fault` is what ended the run early, if anything did."""
        fault = fault and checkable(fault, job)
        diagnosis = self._diagnosed(job, fault) if fault else Diagnosis(verdict=Verdict.OK)
        report = Report(
            verdict=diagnosis.verdict,
            message=neutral(sentence(fault, diagnosis, self.timing)),
            kernel_digest=job.kernel_digest,
            phase=self.phase if fault else None,
            cause=diagnosis.cause,
            evidence=diagnosis.evidence and neutral(diagnosis.evidence),
            ranks=diagnosis.ranks,
            flags=tuple(dict.fromkeys([*self.flags, *flags_of(job, known["isolation"])])),
            flag_lines={flag: tuple(at) for flag, at in lines_of(job.source).items()},
            trials=tuple(self.trials),
            timing=self.timing,
            phase_s=self.phase_s,
            panel_s=self.panel_s,
            gpus=self.gpus,
            floors=self.bounds,
            timelines=self.timelines,
            mechanisms=self.mechanisms,
            logs=tuple(replace(log, text=neutral(log.text)) for log in self.logs),
            software_version=__version__,
            setting=job.setting,
            **known,
        )
        return _within_bounds(report)

    def _diagnosed(self, job: Job, fault: Fault) -> Diagnosis:
        """Add what the logs show to the fault."""
        found = refine(
            fault.verdict, fault.cause, fault.evidence, self.logs, self.phase, ranks=fault.ranks
        )
        if job.device is not Device.CUDA:
            return found
        found = with_kernel(found, job.source)
        return unblamed(found) if job.placement is Placement.SHARED else found


def _within_bounds(report: Report) -> Report:
    """Return the report without what ranks show and print, where that makes it too long to send."""
    shorter = replace(report, timelines=())
    found = (report, shorter, replace(shorter, logs=()))
    return next((r for r in found if len(json.dumps(encode(r))) <= MAX_REPORT_BYTES), found[-1])
