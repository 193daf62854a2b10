"""Takes archives in parts: who may send how much, and how the parts become one file."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import IO
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Upload, UploadPart
from leaderboard.submissions.practice import QuotaSpent, in_turn
from leaderboard.submissions.spool import scratch_file

MOST_OPEN = 2  # of a person, with those of their teams
# An open upload that was idle for so long makes room for the next one.
IDLE = timedelta(minutes=10)
_SEND_AGAIN = "POST the same size and SHA-256 to /api/v1/uploads: the answer says what is stored."


class UploadsFull(RequestError):
    """Reports that all open uploads together have as much as the site keeps; `wait` in seconds."""

    wait = 600

    def __init__(self) -> None:
        says = "The site stores as many bytes of open uploads as it may."
        super().__init__("uploads_full", says, "Try again later.", status=503)


def begin(owner: AbstractBaseUser, size_bytes: int, sha256: str) -> tuple[Upload, bool]:
    """Return an open upload for these bytes, and whether it is new. Raises RequestError where two
    others are being sent."""
    Upload.objects.expire()
    with transaction.atomic():
        accounts = in_turn(owner)
        own = Upload.objects.open().filter(owner__in=accounts).order_by("touched_at")
        same = own.filter(owner=owner.pk, size_bytes=size_bytes, sha256=sha256).first()
        if same:
            return same, False
        idle = list(own.filter(touched_at__lt=timezone.now() - IDLE))
        while own.count() >= MOST_OPEN:
            if not idle:
                says = f"{MOST_OPEN} uploads of yours are open, teams included."
                raise QuotaSpent("upload_quota", says)
            idle.pop(0).delete()
        made = Upload.objects.create(owner_id=owner.pk, size_bytes=size_bytes, sha256=sha256)
    return made, True


def upload_of(owner: AbstractBaseUser, upload_id: UUID, *, is_locked: bool = False) -> Upload:
    """Return an upload of this owner; with `is_locked`, for the caller's transaction alone. Raises
    RequestError (404), also for one of another owner."""
    own = Upload.objects.filter(owner=owner.pk, pk=upload_id)
    found = (own.select_for_update() if is_locked else own).first()
    if found is None:
        says = "No open upload of yours has this id: uploads are kept for a day."
        fields = {"upload": "unknown"}
        raise RequestError("unknown_upload", says, _SEND_AGAIN, status=404, fields=fields)
    return found


def append(owner: AbstractBaseUser, upload_id: UUID, offset: int, data: bytes) -> Upload:
    """Store a part at the end of an upload; the last part may come twice. Raises RequestError."""
    with transaction.atomic():
        upload = upload_of(owner, upload_id, is_locked=True)
        if upload.submission_id is not None:
            raise used(upload)
        if offset == upload.stored_bytes:
            _check_room(upload, data)
            UploadPart.objects.create(upload=upload, offset=offset, data=data)
            upload.stored_bytes += len(data)
            upload.save(update_fields=["stored_bytes", "touched_at"])
        elif not _is_last(upload, offset, data):
            says = f"The upload has {upload.stored_bytes} bytes; this part begins at {offset}."
            fix = f"Send the part that begins at {upload.stored_bytes}."
            fields = {"offset": f"must be {upload.stored_bytes}"}
            raise RequestError("wrong_offset", says, fix, status=409, fields=fields)
    return upload


def _check_room(upload: Upload, data: bytes) -> None:
    if not data:
        raise RequestError("empty_part", "The part is empty.", "Send at least one byte.")
    if upload.stored_bytes + len(data) > upload.size_bytes:
        says = f"With this part the upload has more than its {upload.size_bytes} bytes."
        raise RequestError("too_large", says, "Send what was announced.", status=413)
    if Upload.objects.all_bytes() + len(data) > settings.PKB_MAX_UPLOADS_BYTES:
        raise UploadsFull


def _is_last(upload: Upload, offset: int, data: bytes) -> bool:
    """Return True for the part that was stored last, sent again."""
    if not data or offset + len(data) != upload.stored_bytes:
        return False
    part = upload.parts.filter(offset=offset).first()
    return part is not None and bytes(part.data) == data


def whole(upload: Upload) -> IO[bytes]:
    """Return a file with all bytes of an upload. Raises RequestError where some are missing, or
    where they are others than were announced: then the upload is deleted."""
    if upload.stored_bytes < upload.size_bytes:
        says = f"The upload has {upload.stored_bytes} of {upload.size_bytes} bytes."
        fields = {"upload": "not complete"}
        raise RequestError("upload_not_complete", says, "Send the rest.", status=409, fields=fields)
    file, digest = scratch_file(), hashlib.sha256()
    parts = UploadPart.objects.filter(upload=upload).order_by("offset")
    for key in list(parts.values_list("pk", flat=True)):
        data = b"".join(map(bytes, parts.filter(pk=key).values_list("data", flat=True)))
        digest.update(data)
        file.write(data)
    if digest.hexdigest() != upload.sha256:
        file.close()
        upload.delete()
        says = "The bytes of the upload do not have the SHA-256 that was announced."
        fields = {"upload": "another SHA-256"}
        raise RequestError("wrong_sha256", says, "Send the archive again.", fields=fields)
    file.seek(0)
    return file


def used(upload: Upload) -> RequestError:
    """Return the error for an upload that a submission has used."""
    named = f" {upload.submission_id}" if upload.submission_id else ""
    says, fix = f"Submission{named} has used this upload.", "Upload the archive again."
    return RequestError("upload_used", says, fix, status=409, fields={"upload": "used"})
