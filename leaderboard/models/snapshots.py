"""Records results as they stood when somebody gave them a name, so that a paper can cite them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from leaderboard.kit.json_types import JsonDict


class Snapshot(models.Model):
    """Names a snapshot; `files` lists {name, bytes, sha256} of what was written."""

    tag = models.SlugField(max_length=64, primary_key=True)
    created_at = models.DateTimeField(auto_now_add=True)
    data_version = models.PositiveBigIntegerField()
    judge_version = models.CharField(max_length=32)
    files: models.JSONField[list[JsonDict], list[JsonDict]] = models.JSONField()

    objects = models.Manager["Snapshot"]()

    class Meta:
        ordering = ("-created_at", "-tag")
        constraints = (models.CheckConstraint(condition=~Q(tag=""), name="snapshot_has_tag"),)

    def __str__(self) -> str:
        return self.tag
