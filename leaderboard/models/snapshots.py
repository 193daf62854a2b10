"""Results as they stood when somebody gave them a name, so that a paper can cite them."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q


class Snapshot(models.Model):
    """`files` lists {name, bytes, sha256} of what was written."""

    tag = models.SlugField(max_length=64, primary_key=True)
    created_at = models.DateTimeField(auto_now_add=True)
    data_version = models.PositiveBigIntegerField()
    judge_version = models.CharField(max_length=32)
    files: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField()

    objects = models.Manager["Snapshot"]()

    class Meta:
        ordering = ("-created_at", "-tag")
        constraints = (models.CheckConstraint(condition=~Q(tag=""), name="snapshot_has_tag"),)

    def __str__(self) -> str:
        return self.tag
