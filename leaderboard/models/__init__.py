"""Declares the tables: invariants are constraints, questions are QuerySet methods.

Imported by every room but kit, metrics and charts.
"""

from leaderboard.models.access import ApiToken, AuditEntry, Scope, WorkerHost
from leaderboard.models.catalogue import (
    DataVersion,
    Hardware,
    LanguageModel,
    Problem,
    Publication,
    PublishedResult,
)
from leaderboard.models.choices import Harness, HostState, Moderation, Status, Trust, Visibility
from leaderboard.models.declines import Decline
from leaderboard.models.generation_usage import Making, Transcript
from leaderboard.models.judge_use import JudgeUse
from leaderboard.models.notices import Delivery, Notice, NoticeChoice
from leaderboard.models.rejected_reports import RefusedReport
from leaderboard.models.rulings import Ban, Complaint, Ruling
from leaderboard.models.runs import Run
from leaderboard.models.snapshots import Snapshot
from leaderboard.models.sources import FoundLanguages, Source
from leaderboard.models.submissions import Kernel, Submission
from leaderboard.models.summaries import LeaderboardRow, ProblemAggregate, Summary
from leaderboard.models.teams import Invitation, Membership, Role, Team
from leaderboard.models.training import Judgement, TrainingGroup
from leaderboard.models.uploads import Upload, UploadPart

__all__ = [
    "ApiToken",
    "AuditEntry",
    "Ban",
    "Complaint",
    "DataVersion",
    "Decline",
    "Delivery",
    "FoundLanguages",
    "Hardware",
    "Harness",
    "HostState",
    "Invitation",
    "JudgeUse",
    "Judgement",
    "Kernel",
    "LanguageModel",
    "LeaderboardRow",
    "Making",
    "Membership",
    "Moderation",
    "Notice",
    "NoticeChoice",
    "Problem",
    "ProblemAggregate",
    "Publication",
    "PublishedResult",
    "RefusedReport",
    "Role",
    "Ruling",
    "Run",
    "Scope",
    "Snapshot",
    "Source",
    "Status",
    "Submission",
    "Summary",
    "Team",
    "TrainingGroup",
    "Transcript",
    "Trust",
    "Upload",
    "UploadPart",
    "Visibility",
    "WorkerHost",
]
