"""What a rank may say of its own failure: a closed list, read by the judge as untrusted text.

A claim can only end the run of the submission that makes it, and only with a verdict that counts
against it, so a forged one gains nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from evaluator.diagnosis.log_patterns import AFTERMATH, MESSAGES, ROOTS, first_sighting
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
MAX_TEXT = 500
MAX_READ_CHARS = 1 << 20


class CallFault(Exception):
    """A fault that the runner found itself, already classified."""

    def __init__(self, verdict: str, cause: str, text: str) -> None:
        super().__init__(text)
        self.verdict, self.cause, self.text = verdict, cause, text


@dataclass(frozen=True, kw_only=True)
class Claim:
    verdict: Verdict
    cause: str
    text: str


def claim_of(error: BaseException, stage: str) -> bytes:
    """The claim for an exception; `stage` is `import` while the module loads, then `call`."""
    if isinstance(error, CallFault):
        verdict, cause, text = error.verdict, error.cause, error.text
    else:
        verdict, cause, text = _classify(error, stage)
    return json.dumps(
        {"verdict": verdict, "cause": cause, "text": plain_text(text, MAX_TEXT)}
    ).encode()


def _classify(error: BaseException, stage: str) -> tuple[str, str, str]:
    """Verdict, cause and telling line of an exception, by what compilers, CUDA and torch say in it
    and by its type."""
    name = type(error).__name__
    text = f"{name}: {str(error)[:MAX_READ_CHARS]}"
    at_stage = Verdict.IMPORT_ERROR if stage == "import" else Verdict.RUNTIME_ERROR
    if isinstance(error, SyntaxError):
        return Verdict.BUILD_ERROR, "syntax", text
    if isinstance(error, MemoryError):
        return Verdict.OOM, "memory", text
    sighting = first_sighting(text, ROOTS) or first_sighting(text, AFTERMATH)
    if sighting is None and isinstance(error, (AttributeError, NameError, ImportError)):
        return at_stage, "import" if isinstance(error, ImportError) else "api", text
    sighting = sighting or first_sighting(text, MESSAGES)
    if sighting is None:
        return at_stage, "exception", text
    line = sighting.line if sighting.line.startswith(name) else f"{name}: {sighting.line}"
    return sighting.sign.verdict or at_stage, sighting.sign.cause, line


def read_claim(claim: bytes) -> Claim:
    """The claim of a rank; anything malformed or not claimable is a plain runtime error."""
    try:
        fields = json.loads(claim)
        verdict = Verdict(str(fields["verdict"]))
        cause, text = str(fields["cause"]), str(fields["text"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return Claim(verdict=Verdict.RUNTIME_ERROR, cause="claim", text="unreadable claim")
    if verdict not in CLAIMABLE or cause not in CAUSES:
        return Claim(verdict=Verdict.RUNTIME_ERROR, cause="claim", text=plain_text(text, MAX_TEXT))
    return Claim(verdict=verdict, cause=cause, text=plain_text(text, MAX_TEXT))
