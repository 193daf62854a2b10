"""Stores reports that the site did not believe, for staff."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from leaderboard.models.access import ApiToken
from leaderboard.models.runs import Run

REASON_LIMIT = 1000
BODY_LIMIT = 64 << 10


class RefusedReportQuerySet(models.QuerySet["RefusedReport"]):
    def keep(self, run: Run, token_id: int, *, code: str, reason: str, body: str) -> None:
        """Store the beginning of a report of the worker that has this run, and what is wrong."""
        self.create(
            run=run,
            token_id=token_id,
            host=run.host,
            code=code,
            reason=reason[:REASON_LIMIT],
            body=body[:BODY_LIMIT],
        )


class RefusedReport(models.Model):
    """Holds the first 64 KiB of a report that does not fit its run. A run has MAX_TRIES at most."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="refused_reports")
    token = models.ForeignKey(ApiToken, models.PROTECT, related_name="+")
    host = models.CharField(max_length=200)
    code = models.CharField(max_length=64)
    reason = models.CharField(max_length=REASON_LIMIT)
    body = models.TextField()
    refused_at = models.DateTimeField(default=timezone.now)

    objects = RefusedReportQuerySet.as_manager()

    class Meta:
        ordering = ("-refused_at", "-id")
        indexes = (models.Index(fields=("-refused_at", "-id"), name="refused_newest"),)

    def __str__(self) -> str:
        return f"{self.host}: {self.reason}"
