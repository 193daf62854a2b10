"""What a run has found so far, and the report that it makes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evaluator.diagnose import flags_of, sentence
from evaluator.hardware import environment
from evaluator.job import Job
from evaluator.ranks import Fault
from evaluator.report import Phase, RankLog, Report, Timing, Trial, Verdict


@dataclass(kw_only=True)
class Findings:
    """What is known so far; a run that ends early keeps it."""

    trials: list[Trial] = field(default_factory=list)
    timing: Timing | None = None
    flags: list[str] = field(default_factory=list)
    phase: Phase = Phase.BUILD
    phase_s: dict[str, float] = field(default_factory=dict)
    logs: tuple[RankLog, ...] = ()

    def report(self, job: Job, fault: Fault | None, known: dict[str, Any]) -> Report:
        """`fault` is what ended the run early, if anything did."""
        return Report(
            verdict=fault.verdict if fault else Verdict.OK,
            message=sentence(fault, self.timing),
            kernel_digest=job.kernel_digest,
            environment=environment(),
            phase=self.phase if fault else None,
            cause=fault.cause if fault else None,
            evidence=fault.evidence if fault else None,
            ranks=fault.ranks if fault else (),
            flags=tuple(dict.fromkeys([*self.flags, *flags_of(job, known["isolation"])])),
            trials=tuple(self.trials),
            timing=self.timing,
            phase_s=self.phase_s,
            logs=self.logs,
            **known,
        )
