"""Sends what is due. A message that is lost is sent by the next sweep, one that is sent twice has
the same id."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import connections
from django.db.models import QuerySet
from django.utils import timezone

from leaderboard.kit.links import url
from leaderboard.kit.visible import visible
from leaderboard.models.notices import (
    MAX_TRIES,
    Channel,
    Delivery,
    Event,
    Notice,
    NoticeChoice,
)
from leaderboard.runs import webhooks
from leaderboard.runs.addresses import confirmed_address

PAUSES = [timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 720)]
AT_A_TIME = 100
log = logging.getLogger(__name__)
_BESIDE = ThreadPoolExecutor(max_workers=1, thread_name_prefix="notices")
_last: list[Future[None]] = []


def deliver_later() -> None:
    """Send what is due beside the caller, unless that goes on already."""
    if not (_last and not _last[0].done()):
        _last[:] = [_BESIDE.submit(_deliver_apart)]


def _deliver_apart() -> None:
    try:
        deliver()
    except Exception:
        log.exception("notices were not sent")
    finally:
        connections.close_all()


def deliver() -> int:
    """Send what is due; return how many arrived."""
    for notice in Notice.objects.filter(is_spread=False).order_by("pk")[:AT_A_TIME]:
        rows = [
            Delivery(notice=notice, channel=way, next_at=timezone.now()) for way in ways(notice)
        ]
        Delivery.objects.bulk_create(rows, ignore_conflicts=True)
        Notice.objects.filter(pk=notice.pk).update(is_spread=True)
    due = Delivery.objects.filter(next_at__lte=timezone.now()).order_by("next_at", "pk")
    return sum(
        map(_attempt, due.select_related("notice__submission__model", "notice__owner")[:AT_A_TIME])
    )


def ways(notice: Notice) -> Iterator[Channel]:
    """Return by which ways an owner is told; of a closed account by none."""
    if not notice.owner.is_active:
        return
    choice = NoticeChoice.of(notice.owner_id)
    if notice.kind in choice.mailed and confirmed_address(notice.owner):
        yield Channel.MAIL
    if choice.webhook and not choice.webhook_off:
        yield Channel.WEBHOOK


def _attempt(row: Delivery) -> bool:
    """Try once, unless somebody else does; the next time is set before."""
    again = timezone.now() + PAUSES[min(row.tries, len(PAUSES) - 1)]
    mine = Delivery.objects.filter(pk=row.pk, tries=row.tries, next_at=row.next_at)
    if not mine.update(tries=row.tries + 1, next_at=again):
        return False
    try:
        SENDERS[Channel(row.channel)](row.notice)
    except (webhooks.NotSent, OSError, ValueError) as error:
        if row.tries + 1 >= MAX_TRIES:
            _give_up(row, str(error))
        elif row.channel == Channel.WEBHOOK:  # one address that hangs holds nobody else up
            _beside(row).filter(next_at__lt=again).update(next_at=again)
        return False
    Delivery.objects.filter(pk=row.pk).update(done_at=timezone.now(), next_at=None)
    return True


def _give_up(row: Delivery, why: str) -> None:
    Delivery.objects.filter(pk=row.pk).update(next_at=None)
    if row.channel == Channel.WEBHOOK:
        said = f"Switched off on {timezone.now():%Y-%m-%d} after {MAX_TRIES} tries: {why}"
        NoticeChoice.objects.filter(pk=row.notice.owner_id).update(webhook_off=said[:200])
        _beside(row).update(next_at=None)


def _beside(row: Delivery) -> QuerySet[Delivery]:
    """Return what is yet to be sent to the same owner by the same way."""
    return Delivery.objects.filter(
        channel=row.channel, notice__owner=row.notice.owner_id, done_at=None, next_at__isnull=False
    )


def _mail(notice: Notice) -> None:
    address = confirmed_address(notice.owner)
    if not address:
        return
    choice = f"Which notices are sent: {here('notices')}"
    body = f"{visible(notice.text)}\n\n{address_of(notice)}\n\n{choice}\n"
    EmailMessage(subject_of(notice), body, to=[address]).send()


def _post(notice: Notice) -> None:
    choice = NoticeChoice.of(notice.owner_id)
    if choice.webhook and not choice.webhook_off:
        body = json.dumps(record_of(notice)).encode()
        webhooks.post(choice.webhook, webhooks.secret_of(choice.webhook_salt), body)


SENDERS = {Channel.MAIL: _mail, Channel.WEBHOOK: _post}


def subject_of(notice: Notice) -> str:
    """Return a line that says what happened to which submission, as safe as a mail's head needs."""
    model = " ".join(visible(notice.submission.model.name).split())
    return f"Submission {notice.submission_id} ({model}): {Event(notice.kind).value}"


def record_of(notice: Notice) -> dict[str, object]:
    return {
        "id": notice.pk,
        "kind": notice.kind,
        "submission": notice.submission_id,
        "model": notice.submission.model.name,
        "text": notice.text,
        "url": address_of(notice),
        "at": notice.created_at.isoformat(),
    }


def address_of(notice: Notice) -> str:
    return here("submission", notice.submission_id)


def here(name: str, *parts: object) -> str:
    """Return an address with the site's, where the site knows it."""
    return f"{settings.PKB_PUBLIC_URL}{url(name, *parts)}"
