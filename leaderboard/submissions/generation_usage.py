"""Puts what an archive tells of how kernels were made beside the kernels that it is of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Kernel, Making, Submission, Transcript
from leaderboard.models.generation_usage import RISING
from leaderboard.submissions.archives import ATTEMPTS
from leaderboard.submissions.attempt_archives import AttemptLine, Place, Told

_FIX = "Send the archive as its harness packed it, or leave out what is told of other kernels."


def check_told(told: Told, digests: Mapping[Place, str]) -> None:
    """Check that every line and transcript is of a kernel of the archive, `digests` by their place,
    and that no attempt gives back what it has used. Raises RequestError."""
    for place, line in told.lines.items():
        if place not in digests:
            number, attempt, step = place
            raise _fault(line, f"no kernel is step {step} of attempt {attempt} at problem {number}")
        if line.sha256 not in (None, digests[place]):
            raise _fault(line, f"its sha256 is not that of the kernel, {digests[place]}")
    attempts = {place[:2] for place in digests}
    for number, attempt in told.transcripts:
        if (number, attempt) not in attempts:
            where = f"transcripts/{number}/{attempt}.jsonl.gz"
            says = f"{where}: there is no kernel of attempt {attempt} at problem {number}."
            raise RequestError("bad_attempts", says, _FIX, fields={"archive": says})
    for steps in _steps(told):
        _check_rising(steps)


def _steps(told: Told) -> Iterable[list[AttemptLine]]:
    """Return the lines of each attempt, in the order of steps."""
    found: dict[tuple[int, int], list[AttemptLine]] = {}
    for place, line in sorted(told.lines.items(), key=lambda pair: pair[0]):
        found.setdefault(place[:2], []).append(line)
    return found.values()


def _check_rising(steps: Sequence[AttemptLine]) -> None:
    most: dict[str, float] = {}
    for line in steps:
        for name in RISING:
            value = line.columns[name]
            if value is None:
                continue
            if value < most.get(name, 0):
                says = f"{name} is less than at an earlier step, and should be all used so far"
                raise _fault(line, says)
            most[name] = value


def _fault(line: AttemptLine, says: str) -> RequestError:
    message = f"{ATTEMPTS}, line {line.number}: {says}."
    return RequestError("bad_attempts", message, _FIX, fields={"archive": message})


def store_told(submission: Submission, kernels: Iterable[Kernel], told: Told) -> None:
    """Store what is told of a submission's kernels, which `check_told` has found to fit."""
    by_place = {(k.problem_id, k.attempt, k.step): k for k in kernels}
    Making.objects.bulk_create(
        Making(kernel=by_place[place], **line.columns) for place, line in told.lines.items()
    )
    for (number, attempt), one in told.transcripts.items():  # never all of them in memory
        Transcript.objects.create(
            submission=submission,
            problem_id=number,
            attempt=attempt,
            packed=one.member.data,
            size_bytes=one.size_bytes,
        )


def cost_told(told: Told, attempts: Iterable[tuple[int, int]]) -> float | None:
    """Return what these attempts cost together; None unless each tells it."""
    costs = {
        place[:2]: line.columns["cost_usd"]
        for place, line in sorted(told.lines.items(), key=lambda pair: pair[0])
    }
    every = [costs.get(place) for place in attempts]
    known = [cost for cost in every if cost is not None]
    return round(math.fsum(known), 6) if every and len(known) == len(every) else None
