"""Bounds how many runs of a person wait, and how many practice runs wait or run at a time: those of
their teams count as theirs."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Run
from leaderboard.models.runs import OPEN
from leaderboard.models.teams import accounts_of, person_of


class QuotaSpent(RequestError):
    """Reports that runs must end before more may wait; `wait` is in seconds."""

    wait = 10

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message, "Wait until some have ended.", status=429)


def check_quota(owner: AbstractBaseUser, more: int) -> None:
    """Raise RequestError where `more` runs are too many, until the caller's transaction holds."""
    most = settings.PKB_PRACTICE_RUNS
    if more > most:
        message = f"These are {more} kernels; {most} practice runs may wait or run at a time."
        raise RequestError("practice_quota", message, "Hand in fewer at a time, or for ranking.")
    own = Run.objects.filter(kernel__submission__owner__in=in_turn(owner), status__in=OPEN)
    there = own.filter(kernel__submission__is_practice=True).count()
    if there + more > most:
        message = f"{there} practice runs of yours wait or run, teams included; {most} may."
        raise QuotaSpent("practice_quota", message)


def check_queue(owner: AbstractBaseUser, more: int) -> None:
    """Raise RequestError where `more` waiting runs are too many, until the caller's transaction
    holds."""
    most = settings.PKB_QUEUED_RUNS_PER_ACCOUNT
    if more > most:
        message = f"These are {more} kernels; {most} runs of an account may wait at a time."
        raise RequestError("queue_quota", message, "Hand in fewer at a time.")
    there = Run.objects.queued().filter(kernel__submission__owner__in=in_turn(owner)).count()
    if there + more > most:
        message = f"{there} runs of yours wait, teams included, and {more} would come; {most} may."
        raise QuotaSpent("queue_quota", message)


def in_turn(owner: AbstractBaseUser) -> list[int]:
    """Return the accounts whose runs count together. Has a second request of the same moment
    counted after the first, and after a ban. Raises RequestError for an account that was closed
    meanwhile."""
    person = person_of(owner.pk)
    same = get_user_model().objects.select_for_update().filter(pk__in={owner.pk, person})
    is_active = dict(same.order_by("pk").values_list("pk", "is_active"))
    if not is_active.get(owner.pk):
        message = "The account is closed, and hands nothing in."
        raise RequestError("account_closed", message, "Ask this site's staff.", status=403)
    return accounts_of(person)
