"""Finds the submission that an address names."""

from __future__ import annotations

from urllib.parse import urlencode

from django.db.models import Count, Subquery
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from leaderboard.delivery.pages import Redirect
from leaderboard.delivery.readers import may_see, refuse_strangers
from leaderboard.kit.submission_addresses import number_and_key
from leaderboard.models import Problem, Submission, Visibility


def submission_called(request: HttpRequest, address: str) -> tuple[Submission, int]:
    """Return the submission, and how many problems are scored, in one query. Raises Http404 and
    Elsewhere."""
    number, _ = number_and_key(address)
    counted = Problem.objects.scored().order_by().values("scored").annotate(n=Count("pk"))
    known = Submission.objects.select_related("model", "team")
    found = get_object_or_404(known.annotate(scored=Subquery(counted.values("n"))), pk=number)
    refuse_guesses(request, found, address)
    return found, vars(found)["scored"] or 0


def refuse_guesses(request: HttpRequest, submission: Submission, address: str) -> None:
    """Raise Http404 unless this reader, who named a submission so, may know of it; Elsewhere where
    it has another address, which pages of a submission are kept under."""
    refuse_strangers(request, submission)
    if address == submission.address:
        return
    if submission.visibility == Visibility.UNLISTED and not may_see(request, submission):
        raise Http404
    if "submission" in request.GET:
        raise Redirect(urlencode({"submission": submission.address}))
    path = request.path.replace(f"/{address}", f"/{submission.address}", 1)
    raise Redirect(request.GET.urlencode(), path.removesuffix(".json").removesuffix(".csv"))
