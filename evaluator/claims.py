"""What a rank may say of its own failure: a closed list, read by the judge as untrusted text.

A claim can only end the run of the submission that makes it, and only with a verdict that counts
against it, so a forged one gains nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from evaluator.report import Verdict
from evaluator.text import plain_text

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
MAX_TEXT = 500


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
        verdict, cause = _classify(error, stage)
        text = f"{type(error).__name__}: {_telling_line(str(error))}"
    return json.dumps(
        {"verdict": verdict, "cause": cause, "text": plain_text(text, MAX_TEXT)}
    ).encode()


def _telling_line(text: str) -> str:
    """The compiler's first error, where the text is its whole output."""
    return next((line for line in text.splitlines() if " error: " in line), text)


def _classify(error: BaseException, stage: str) -> tuple[str, str]:
    text = str(error)
    if isinstance(error, SyntaxError):
        return Verdict.BUILD_ERROR, "syntax"
    if "Error building extension" in text or "Ninja is required" in text:
        return Verdict.BUILD_ERROR, "compiler"
    if isinstance(error, MemoryError) or "out of memory" in text.lower():
        return Verdict.OOM, "memory"
    if isinstance(error, (AttributeError, NameError, ImportError)):
        cause = "import" if isinstance(error, ImportError) else "api"
        return (Verdict.IMPORT_ERROR if stage == "import" else Verdict.RUNTIME_ERROR), cause
    if stage == "import":
        return Verdict.IMPORT_ERROR, "exception"
    if "shape" in text or "size" in text:
        return Verdict.RUNTIME_ERROR, "shape"
    return Verdict.RUNTIME_ERROR, "exception"


def read_claim(claim: bytes) -> Claim:
    """The claim of a rank; anything malformed or not claimable is a plain runtime error."""
    try:
        fields = json.loads(claim)
        verdict = Verdict(str(fields["verdict"]))
        cause, text = str(fields["cause"]), str(fields["text"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return Claim(verdict=Verdict.RUNTIME_ERROR, cause="claim", text="unreadable claim")
    if verdict not in CLAIMABLE or not cause.isidentifier():
        return Claim(verdict=Verdict.RUNTIME_ERROR, cause="claim", text=plain_text(text, MAX_TEXT))
    return Claim(verdict=verdict, cause=cause[:40], text=plain_text(text, MAX_TEXT))
