"""Says who may read what belongs to somebody."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from leaderboard.models import Submission, Visibility
from leaderboard.models.teams import teams_of


def may_see(request: HttpRequest, submission: Submission | None) -> bool:
    """Return whether a reader may see what is private of a submission: its owner, members of its
    team, and staff."""
    user = request.user
    if not user.is_authenticated or user.is_staff or submission is None:
        return user.is_authenticated and user.is_staff
    is_own = user.pk == submission.owner_id
    return is_own or (submission.team_id is not None and submission.team_id in teams_of(user))


def refuse_strangers(request: HttpRequest, submission: Submission) -> None:
    """Raise Http404 unless this reader may know of a submission. To be asked before any parameter
    is read: to refuse one, with what it may be, would tell that something is there."""
    if submission.visibility == Visibility.PRIVATE and not may_see(request, submission):
        raise Http404
