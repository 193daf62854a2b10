"""Reads what a rank says of its own failure: untrusted bytes, held against closed lists.

A claim can only end the run of the submission that makes it, and only with a verdict that counts
against it, so a forged one gains nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from evaluator.diagnosis.log_patterns import AFTERMATH, MAX_EVIDENCE, MESSAGES, ROOTS
from evaluator.messages.report import Verdict
from evaluator.messages.text import plain_text

CLAIMABLE = frozenset(
    {
        Verdict.BUILD_ERROR,
        Verdict.IMPORT_ERROR,
        Verdict.MISSING_ENTRY_POINT,
        Verdict.RUNTIME_ERROR,
        Verdict.SHAPE_MISMATCH,
        Verdict.DTYPE_MISMATCH,
        Verdict.OOM,
    }
)
CAUSES = frozenset(
    {
        *("exception", "import", "api", "no_solution"),
        *("output_type", "output_count", "output_shape", "output_dtype"),
        *(sign.cause for sign in ROOTS + MESSAGES + AFTERMATH),
    }
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Holds what a rank says of its failure, found claimable."""

    verdict: Verdict
    cause: str
    text: str


def read_claim(claim: bytes) -> Claim:
    """Return the claim of a rank; anything malformed or not claimable is a plain runtime error."""
    try:
        fields = json.loads(claim)
        verdict = Verdict(str(fields["verdict"]))
        cause, text = str(fields["cause"]), str(fields["text"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return Claim(verdict=Verdict.RUNTIME_ERROR, cause="claim", text="unreadable claim")
    if verdict not in CLAIMABLE or cause not in CAUSES:
        return Claim(
            verdict=Verdict.RUNTIME_ERROR, cause="claim", text=plain_text(text, MAX_EVIDENCE)
        )
    return Claim(verdict=verdict, cause=cause, text=plain_text(text, MAX_EVIDENCE))
