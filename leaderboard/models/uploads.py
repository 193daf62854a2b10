"""Stores archives that come in parts, until a submission uses them: in the database, so that any
process and host of the site can take the next part."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.conf import settings
from django.db import models, transaction
from django.db.models import F, Q, Sum
from django.utils import timezone

from leaderboard.models.submissions import Submission

KEPT_FOR = timedelta(days=1)


class UploadQuerySet(models.QuerySet["Upload"]):
    def open(self) -> UploadQuerySet:
        """Return those that no submission has used."""
        return self.filter(submission=None)

    def expire(self) -> int:
        """Delete what was begun a day ago, used or not."""
        return self.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()[0]

    def all_bytes(self) -> int:
        """Return how many bytes all open uploads have stored together."""
        return int(self.open().aggregate(all=Sum("stored_bytes"))["all"] or 0)


class Upload(models.Model):
    """Records an archive that its owner sends in parts. `asked` is the digest of the request that
    used it, by which the same request is known when it comes again."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    size_bytes = models.PositiveIntegerField()
    stored_bytes = models.PositiveIntegerField(default=0)
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    touched_at = models.DateTimeField(auto_now=True)
    submission = models.ForeignKey(Submission, models.CASCADE, null=True, related_name="+")
    asked = models.CharField(max_length=64, blank=True, default="")

    objects = UploadQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(stored_bytes__lte=F("size_bytes")), name="upload_within_its_size"
            ),
        )
        indexes = (models.Index(fields=("created_at",), name="upload_age"),)

    def __str__(self) -> str:
        return str(self.id)

    def mark_used(self, submission: Submission) -> bool:
        """Note the submission that uses it and delete its parts. Return False if another one was
        first, or if it is gone."""
        open_one = Upload.objects.open().filter(pk=self.pk)
        with transaction.atomic():
            is_first = open_one.update(submission=submission, asked=self.asked) == 1
            if is_first:
                UploadPart.objects.filter(upload=self).delete()
        return is_first


class UploadPart(models.Model):
    """Holds the bytes of an upload from an offset on."""

    upload = models.ForeignKey(Upload, models.CASCADE, related_name="parts")
    offset = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("upload", "offset"), name="upload_part_once"),
        )

    def __str__(self) -> str:
        return f"{self.upload_id} from {self.offset}"
