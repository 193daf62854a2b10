"""Lists the closed sets that columns hold; those of the judge come from the evaluator itself."""

from __future__ import annotations

from enum import StrEnum

from django.db import models

from evaluator.messages.job import (
    Backend,
    Device,
    Dtype,
    Job,
    Placement,
    Profile,
    limits_of,
)
from evaluator.messages.report import JUDGE_VERSION, Isolation, Phase, Verdict

Choices = list[tuple[str, str]]


def choices_of(kind: type[StrEnum]) -> Choices:
    return [(member.value, member.value) for member in kind]


BACKENDS = choices_of(Backend)
DEVICES = choices_of(Device)
DTYPES = choices_of(Dtype)
ISOLATIONS = choices_of(Isolation)
PHASES = choices_of(Phase)
PROFILES = choices_of(Profile)
PLACEMENTS = choices_of(Placement)
FULL, SHARED = Placement.FULL.value, Placement.SHARED.value
VERDICTS = choices_of(Verdict)
# Which of the least times that a report tells of (`wire_us`, ...) is the longest.
LIMITERS = [(name, name) for name in ("wire", "hbm", "flops", "latency")]
TRIALS = Job.trials
CURRENT_JUDGE = JUDGE_VERSION
# Judges with another clock than the one before them, and with its checks.
SAME_CHECKS = {"10": "9"}
# Judges before this one timed batches of calls, judges from here on single calls.
FIRST_THAT_TIMES_CALLS = 10

# A timing is kept for these only; what ran faster than the hardware can is evidence, not a result.
TIMED_VERDICTS = (Verdict.OK.value, Verdict.FASTER_THAN_LIGHT.value)
COUNTED_VERDICTS = tuple(verdict.value for verdict in Verdict if verdict.counts)


# Under which an owner may let kernels be trained on.
LICENCES = tuple(
    (name, name) for name in ("Apache-2.0", "MIT", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0")
)


def longest_s(device: str) -> float:
    """Return the seconds within which the phases of a run have ended by their limits, on a host
    that is not busy with others' work."""
    return limits_of(Device(device)).phases_s


def is_timed(placement: str) -> bool:
    """Return whether what is right is timed where ranks are like that; else it is only checked."""
    return placement == FULL


def times_calls(judge_version: str) -> bool:
    """Return whether a judge times single calls behind a gate; older ones timed batches."""
    return judge_version.isdecimal() and int(judge_version) >= FIRST_THAT_TIMES_CALLS


def comparable_judge(version: str, placement: str) -> str:
    """Return the judge with whose results those of this version are compared: where nothing is
    timed, the first with the same checks."""
    return version if is_timed(placement) else SAME_CHECKS.get(version, version)


def judge_of_today(placement: str) -> str:
    """Return the judge version that results of today have."""
    return comparable_judge(CURRENT_JUDGE, placement)


class Status(models.TextChoices):
    """Says where a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class HostState(models.TextChoices):
    """Says what staff let a host do: judge, finish what it has, nothing."""

    SERVING = "serving"
    DRAINED = "drained"
    DISABLED = "disabled"


class Harness(models.TextChoices):
    """Says how a language model was asked."""

    ZERO_SHOT = "zero-shot"
    REPEATED = "repeated"
    AGENTIC = "agentic"
    HUMAN = "human"


class Visibility(models.TextChoices):
    """Says who may see a submission: its owner, whoever has the address, everybody."""

    PRIVATE = "private"
    UNLISTED = "unlisted"
    PUBLIC = "public"


class Trust(models.TextChoices):
    """Says how far numbers are backed: somebody says so, authors published it, it was checked here
    with all ranks on one device, it was run and timed here."""

    SELF_REPORTED = "self-reported"
    PUBLISHED = "published"
    CHECKED = "checked"
    VERIFIED = "verified"


class Moderation(models.TextChoices):
    """Says what staff decided, or that its owner withdrew it. All but accepted ones keep their
    evidence and leave the rankings."""

    ACCEPTED = "accepted"
    DISPUTED = "disputed"
    INVALIDATED = "invalidated"
    WITHDRAWN = "withdrawn"


def one_of(field: str, choices: Choices, name: str) -> models.CheckConstraint:
    """Return a CHECK that a column holds one of its choices (or NULL, where it may)."""
    allowed = [value for value, _ in choices]
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": allowed}), name=name)
