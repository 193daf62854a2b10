"""Says who may read what belongs to somebody."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from leaderboard.kit.permissions import READ_ALL, may
from leaderboard.models import Submission, Visibility
from leaderboard.models.teams import teams_of


def may_see(request: HttpRequest, submission: Submission | None) -> bool:
    """Return whether a reader may see what is private of a submission: its owner, members of its
    team, and staff with that permission."""
    user = request.user
    if not user.is_authenticated:
        return False
    if submission is not None:
        in_team = submission.team_id is not None and submission.team_id in teams_of(user)
        if user.pk == submission.owner_id or in_team:
            return True
    return may(user, READ_ALL)


def refuse_strangers(request: HttpRequest, submission: Submission) -> None:
    """Raise Http404 unless this reader, who has an address that nobody guesses, may know of a
    submission. To be asked before any parameter is read: to refuse one, with what it may be, would
    tell that something is there."""
    if submission.visibility == Visibility.PRIVATE and not may_see(request, submission):
        raise Http404
