"""Reads what ranks say of their own failure or end: untrusted bytes, held against closed lists.

Whatever the bytes are, something is returned and nothing raised. A claim can only end the run of
the submission that makes it, and only with a verdict that counts against it, so a forged one gains
nothing.
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

EXIT_CODES = (-64, 255)  # as wait(2) gives them: the number of a signal, negative, or a byte


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Holds what a rank says of its failure, found claimable."""

    verdict: Verdict
    cause: str
    text: str


@dataclass(frozen=True, kw_only=True)
class End:
    """Holds what a sandbox says of the rank that ended first: its exit code, negative for a signal,
    and the rank, as far as they can be."""

    code: int | None = None
    ranks: tuple[int, ...] = ()


def read_end(note: bytes, world_size: int) -> End:
    """Return what a note of a rank's end says; of a malformed one, what is left of it."""
    fields = _object(note)
    code, rank = fields.get("code"), fields.get("rank")
    return End(
        code=code if type(code) is int and EXIT_CODES[0] <= code <= EXIT_CODES[1] else None,
        ranks=(rank,) if type(rank) is int and 0 <= rank < world_size else (),
    )


def read_claim(claim: bytes) -> Claim:
    """Return the claim of a rank; anything malformed or not claimable is a plain runtime error."""
    fields = _object(claim)
    verdict, cause, text = (fields.get(name) for name in ("verdict", "cause", "text"))
    if not (isinstance(verdict, str) and isinstance(cause, str) and isinstance(text, str)):
        return Claim(verdict=Verdict.RUNTIME_ERROR, cause="claim", text="unreadable claim")
    shown = plain_text(text, MAX_EVIDENCE)
    if verdict not in CLAIMABLE or cause not in CAUSES:
        return Claim(verdict=Verdict.RUNTIME_ERROR, cause="claim", text=shown)
    return Claim(verdict=Verdict(verdict), cause=cause, text=shown)


def _object(raw: bytes) -> dict[str, object]:
    """Return the JSON object in untrusted bytes, empty where there is none."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
