"""Says who may read what belongs to somebody."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from leaderboard.models import Submission, Visibility


def may_see(request: HttpRequest, owner_id: int | None) -> bool:
    user = request.user
    return user.is_authenticated and (user.is_staff or user.pk == owner_id)


def refuse_strangers(request: HttpRequest, submission: Submission) -> None:
    """Raise Http404 unless this reader may know of a submission. To be asked before any parameter
    is read: to refuse one, with what it may be, would tell that something is there."""
    is_hidden = submission.visibility == Visibility.PRIVATE
    if is_hidden and not may_see(request, submission.owner_id):
        raise Http404
