"""Says of a failure of this rank what it is, as a claim that the judge reads as untrusted text."""

from __future__ import annotations

import json

from evaluator.diagnosis.log_patterns import (
    AFTERMATH,
    MAX_EVIDENCE,
    MESSAGES,
    ROOTS,
    first_sighting,
)
from evaluator.messages.report import Verdict
from evaluator.messages.text import plain_text

MAX_READ_CHARS = 1 << 20


class CallFault(Exception):
    """Says that the runner itself found a fault, already classified."""

    def __init__(self, verdict: str, cause: str, text: str) -> None:
        super().__init__(text)
        self.verdict, self.cause, self.text = verdict, cause, text


def claim_of(error: BaseException, stage: str) -> bytes:
    """Return the claim for an exception, as JSON; `stage` is `import` while the module loads, then
    `call`."""
    if isinstance(error, CallFault):
        verdict, cause, text = error.verdict, error.cause, error.text
    else:
        verdict, cause, text = _classify(error, stage)
    return json.dumps(
        {"verdict": verdict, "cause": cause, "text": plain_text(text, MAX_EVIDENCE)}
    ).encode()


def _classify(error: BaseException, stage: str) -> tuple[str, str, str]:
    """Return verdict, cause and telling line of an exception, by what compilers, CUDA and torch say
    in it and by its type."""
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
