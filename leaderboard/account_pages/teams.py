"""Serves the pages on which users make teams, answer invitations, and run a team of theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from leaderboard.account_pages.account import submission_rows
from leaderboard.kit.request_error import RequestError
from leaderboard.kit.row_number import row_number
from leaderboard.models import ApiToken, Invitation, Membership, Role, Scope, Submission, Team
from leaderboard.submissions import teams as changes
from leaderboard.submissions.moderation import note

MOST_TOKENS = 20


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def teams(request: HttpRequest) -> HttpResponse:
    """Show a user's teams and invitations; make a team, or answer an invitation."""
    user, error = request.user, None
    assert user.is_authenticated
    asked = request.POST
    try:
        if "name" in asked:
            return redirect("own-team", changes.create(user, asked["name"].strip()).slug)
        if "invitation" in asked:
            number = row_number(asked["invitation"])
            shown = bool(asked.get("is_shown"))
            changes.answer(user, number, accepts=asked.get("do") == "accept", is_shown=shown)
            return redirect("own-teams")
    except RequestError as refused:
        error = refused
    context = {
        "section": "account",
        "error": error,
        "memberships": Membership.objects.filter(user=user.pk).select_related("team"),
        "invitations": Invitation.objects.to(user).select_related("team"),
    }
    return render(request, "teams.html", context, status=error.status if error else 200)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def team(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a team to its members, and do what one of them asks for."""
    user = request.user
    assert user.is_authenticated
    own = Membership.objects.select_related("team").filter(team__slug=slug, user=user.pk).first()
    if own is None:
        raise Http404
    secret, error = "", None
    if request.method == "POST":
        try:
            secret = _done(own, user, request.POST)
        except RequestError as refused:
            error = refused
        else:
            if not secret:
                is_there = Membership.objects.filter(pk=own.pk).exists()
                return redirect("own-team", slug) if is_there else redirect("own-teams")
    context = {"section": "account", "own": own, "secret": secret, "error": error, **_shown(own)}
    return render(request, "own_team.html", context, status=error.status if error else 200)


def _shown(own: Membership) -> dict[str, object]:
    found = own.team
    return {
        "team": found,
        "is_owner": own.role == Role.OWNER,
        "members": found.memberships.select_related("user"),
        "invitations": found.invitations.open(),
        "tokens": ApiToken.objects.valid().filter(owner=found.account_id),
        "submissions": [
            {**row, "may_edit": own.role == Role.OWNER or row["owner"] == own.user_id}
            for row in submission_rows(Submission.objects.filter(team=found))
        ],
    }


def _done(own: Membership, user: AbstractBaseUser, asked: Mapping[str, str]) -> str:
    """Do what a form asks for; return the text of a new token. Raises RequestError, and
    PermissionDenied for what only owners may."""
    wanted = asked.get("do", "")
    if wanted == "show":
        Membership.objects.filter(pk=own.pk).update(is_shown=bool(asked.get("is_shown")))
        return ""
    is_leaving = wanted == "remove" and asked.get("user") == str(user.pk)
    if own.role != Role.OWNER and not is_leaving:
        raise PermissionDenied
    if wanted not in OF_OWNERS:
        raise RequestError("bad_form", "The form asks for nothing.", "Go back, and try again.")
    return OF_OWNERS[wanted](own.team, user, asked)


def _invite(team: Team, user: AbstractBaseUser, asked: Mapping[str, str]) -> str:
    role = Role.OWNER if asked.get("role") == Role.OWNER else Role.MEMBER
    changes.invite(team, user, asked.get("username", "").strip(), role)
    return ""


def _uninvite(team: Team, user: AbstractBaseUser, asked: Mapping[str, str]) -> str:
    team.invitations.filter(pk=row_number(asked.get("invitation", ""))).delete()
    return ""


def _remove(team: Team, user: AbstractBaseUser, asked: Mapping[str, str]) -> str:
    changes.remove(team, user, row_number(asked.get("user", "")))
    return ""


def _issue(team: Team, user: AbstractBaseUser, asked: Mapping[str, str]) -> str:
    if ApiToken.objects.valid().filter(owner=team.account_id).count() >= MOST_TOKENS:
        message = f"A team has at most {MOST_TOKENS} tokens."
        raise RequestError("many_tokens", message, "Revoke one first.")
    name = asked.get("token", "").strip()[:80] or "unnamed"
    if "\0" in name:
        raise RequestError("bad_token_name", "The name has a NUL character.", "Leave it out.")
    made, text = ApiToken.objects.issue(scope=Scope.SUBMIT, name=name, owner=team.account)
    note(user, "issue", f"team {team.slug}", {"token": made.prefix})
    return text


def _revoke(team: Team, user: AbstractBaseUser, asked: Mapping[str, str]) -> str:
    own = ApiToken.objects.filter(owner=team.account_id, pk=row_number(asked.get("token", "")))
    if own.revoke():
        note(user, "revoke", f"team {team.slug}", {"token": asked["token"]})
    return ""


OF_OWNERS: Mapping[str, Callable[[Team, AbstractBaseUser, Mapping[str, str]], str]] = {
    "invite": _invite,
    "uninvite": _uninvite,
    "remove": _remove,
    "issue": _issue,
    "revoke": _revoke,
}
