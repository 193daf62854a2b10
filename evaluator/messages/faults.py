"""Defines what ends a run before its report is whole: the submitter's fault, or ours."""

from __future__ import annotations

from typing import Any

from evaluator.messages.report import Verdict


class EvaluatorError(Exception):
    """Says that the fault is ours or the host's: retried, never counted against a model."""


class DirtyHost(EvaluatorError):
    """Says that the GPUs are not this host's judges' alone, or stay occupied: it must judge no
    more."""


class Survivors(EvaluatorError):
    """Says that processes of a sandbox are still there long after they were killed."""


class BesideSubmission(EvaluatorError):
    """Says that ours failed while a submission was at work, which may be what made it fail."""


class GpuFull(EvaluatorError):
    """Says that the oracle or the reference finds too little memory on a GPU."""


class Fault(Exception):
    """Says that a side's ranks misbehaved: the submitter's verdict, or our error if it is the
    reference."""

    def __init__(self, verdict: Verdict, cause: str, message: str, **where: Any) -> None:
        super().__init__(message)
        self.verdict, self.cause, self.message = verdict, cause, message
        self.ranks: tuple[int, ...] = tuple(where.get("ranks", ()))
        self.evidence: str | None = where.get("evidence")
