"""The tables. Invariants are constraints; questions are QuerySet methods."""

from leaderboard.models.access import ApiToken, AuditEntry, Scope, WorkerHost
from leaderboard.models.catalogue import (
    DataVersion,
    Hardware,
    LanguageModel,
    Problem,
    Publication,
    PublishedResult,
)
from leaderboard.models.choices import Harness, Moderation, Status, Trust, Visibility
from leaderboard.models.declines import Decline
from leaderboard.models.runs import Run, Summary
from leaderboard.models.submissions import Kernel, Source, Submission

__all__ = [
    "ApiToken",
    "AuditEntry",
    "DataVersion",
    "Decline",
    "Hardware",
    "Harness",
    "Kernel",
    "LanguageModel",
    "Moderation",
    "Problem",
    "Publication",
    "PublishedResult",
    "Run",
    "Scope",
    "Source",
    "Status",
    "Submission",
    "Summary",
    "Trust",
    "Visibility",
    "WorkerHost",
]
