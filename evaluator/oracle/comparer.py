"""Compares what one rank of a submission left with the truth."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from evaluator.messages.job import Job, Profile
from evaluator.messages.report import OutputCheck, Verdict
from evaluator.oracle.call_cache import Call
from evaluator.oracle.canaries import Canaries
from problems import ProblemModule
from problems.comparison import compare, forgiven
from problems.running.calls import Outputs
from problems.spec import Tolerance


@dataclass(frozen=True, kw_only=True)
class Comparer:
    """Judges the answers of one rank to a problem by the tolerance of a job."""

    module: ProblemModule
    job: Job
    rank: int
    canaries: Canaries

    @property
    def tolerance(self) -> Tolerance:
        """Return the problem's tolerance for this job, from which single outputs may differ by
        being tighter."""
        return self.module.problem.tolerance(self.job.profile, self.job.dtype)

    def check_call(self, call: Call, snapshot: torch.Tensor) -> list[OutputCheck]:
        """Judge what a call left in a snapshot, one check per output.

        Under `upstream` only what it returned is compared, as PKB does, and what is nearer to the
        exact answer than the reference is passes: PKB's own check lets it fail.
        """
        problem = self.module.problem
        checks = [
            self.fault(name, Verdict.INPUT_CONTRACT_BROKEN)
            for name in call.overwritten(snapshot, problem.mutates)
        ]
        views = [place.on(snapshot) for place, _ in call.answers(problem.mutates)]
        got = self.settled(tuple(views), call.truth, call.keys)
        if call.exact:
            got = tuple(map(forgiven, got, call.truth, call.exact))
        for position, (name, expected) in enumerate(zip(call.names, call.truth, strict=True)):
            is_output = position < len(call.outputs)
            if not is_output and self.job.profile is Profile.UPSTREAM:
                continue
            unwritten = self.canaries.unwritten(views[position]) if is_output else 0
            if unwritten:
                late = Verdict.LATE_OUTPUT
                checks.append(self.fault(name, late, unwritten, expected.numel()))
            else:
                checks.append(self.compare(name, got[position], expected))
        return checks

    def settled(self, got: Outputs, truth: Outputs, keys: Outputs) -> Outputs:
        """Put the truth in place of every answer that is as good."""
        return self.module.settle(got, truth, keys) if self.module.settle and keys else got

    def compare(self, name: str, got: torch.Tensor, expected: torch.Tensor) -> OutputCheck:
        """Compare one output with the truth."""
        tolerance = self.module.problem.tolerance(self.job.profile, self.job.dtype, name)
        found = compare(got, expected, tolerance)
        wrong = Verdict.OK if found.ok else Verdict.OUTPUT_MISMATCH
        return OutputCheck(
            rank=self.rank,
            output=name,
            elements=found.elements,
            mismatched=found.mismatched,
            max_error=found.max_error,
            verdict=Verdict.NONFINITE_OUTPUT if found.nonfinite else wrong,
            rms_error=found.rms_error,
            rms_limit=found.rms_limit,
        )

    def fault(self, name: str, verdict: Verdict, bad: int = 1, of: int = 1) -> OutputCheck:
        """Return the check of an output that is not compared: `bad` elements of so many."""
        return OutputCheck(
            rank=self.rank,
            output=name,
            elements=of,
            mismatched=bad,
            max_error=None,
            verdict=verdict,
        )
