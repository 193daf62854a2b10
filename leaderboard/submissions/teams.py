"""Makes teams, and says who belongs to them."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from leaderboard.kit.plain_names import is_of_the_site
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Invitation, Membership, Role, Team
from leaderboard.models.teams import MAX_NAME, teams_of
from leaderboard.submissions.moderation import note

MOST_TEAMS = 20
MOST_MEMBERS = 50
# No letter that looks like another, and none that is not seen.
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._&'-]*[A-Za-z0-9.])?")


def create(owner: AbstractBaseUser, name: str) -> Team:
    """Make a team of one owner. Raises RequestError for a name that is taken or may mislead."""
    slug = slugify(name)
    is_plain = len(name) <= MAX_NAME and _PLAIN.fullmatch(name)
    if not (is_plain and slug) or is_of_the_site(name):
        fix = f"Use at most {MAX_NAME} letters a to z, digits, spaces and . _ - & ' between them."
        raise _refused("bad_team_name", "A team cannot have this name.", fix)
    if Membership.objects.filter(user=owner.pk).count() >= MOST_TEAMS:
        raise _refused("many_teams", f"You are in {MOST_TEAMS} teams.", "Leave one first.")
    try:
        with transaction.atomic():
            # Nobody can sign up with such a name, nor log in without a password.
            account = get_user_model()(username=f"team:{slug}")
            account.set_unusable_password()
            account.save()
            team = Team.objects.create(slug=slug, name=name, account=account)
            Membership.objects.create(team=team, user_id=owner.pk, role=Role.OWNER)
            note(owner, "create", f"team {slug}", {})
    except IntegrityError:
        message = "There is a team with this name, or one that makes the same address."
        raise _refused("team_taken", message, "Choose another.") from None
    return team


def _refused(code: str, message: str, fix: str) -> RequestError:
    return RequestError(code, message, fix)


def invite(team: Team, by: AbstractBaseUser, username: str, role: Role) -> None:
    """Invite who has this user name, or will have it soon. Raises RequestError."""
    if not 1 <= len(username) <= 150 or not username.isprintable():
        raise _refused("bad_user_name", "That is no user name.", "Ask them for it.")
    with transaction.atomic():
        list(Team.objects.select_for_update().filter(pk=team.pk).values_list("pk"))
        there = team.memberships.count() + team.invitations.open().count()
        if there >= MOST_MEMBERS:
            message = f"A team has at most {MOST_MEMBERS} members and open invitations."
            raise _refused("many_members", message, "Remove one first.")
        values = {"role": role, "made_at": timezone.now()}
        Invitation.objects.update_or_create(team=team, username=username, defaults=values)
        note(by, "invite", f"team {team.slug}", {"username": username, "role": role})


def answer(user: AbstractBaseUser, number: int, *, accepts: bool, is_shown: bool = False) -> None:
    """Accept or decline an invitation of this user's that is still open; another does nothing."""
    own = Invitation.objects.to(user).filter(pk=number)
    with transaction.atomic():
        invited = own.select_for_update().select_related("team").first()
        if invited is None:
            return
        if accepts:
            values = {"role": invited.role, "is_shown": is_shown}
            _join(invited.team, user, values)
        note(user, "join" if accepts else "decline", f"team {invited.team.slug}", {})
        invited.delete()


def _join(team: Team, user: AbstractBaseUser, values: dict[str, Any]) -> None:
    """Make a user a member; who is one already may become an owner, and no owner less."""
    made = Membership.objects.get_or_create(team=team, user_id=user.pk, defaults=values)[1]
    if not made and values["role"] == Role.OWNER:
        team.memberships.filter(user=user.pk).update(role=Role.OWNER)


def remove(team: Team, by: AbstractBaseUser, user_id: int) -> None:
    """End a membership: one's own, or by an owner. Raises RequestError for the last owner."""
    with transaction.atomic():
        list(Team.objects.select_for_update().filter(pk=team.pk).values_list("pk"))
        owners = team.memberships.filter(role=Role.OWNER)
        if not owners.exclude(user=user_id).exists():
            message = "A team keeps an owner."
            raise _refused("last_owner", message, "Make somebody else an owner first.")
        if team.memberships.filter(user=user_id).delete()[0]:
            note(by, "leave", f"team {team.slug}", {"user": user_id})


def team_for(owner: AbstractBaseUser, slug: str) -> Team | None:
    """Return the team that a submission of this user is to belong to; what comes with a token of a
    team belongs to it. Raises RequestError."""
    account_of = Team.objects.filter(account=owner.pk).first()
    if account_of and slug in ("", account_of.slug):
        return account_of
    if not slug:
        return None
    found = Team.objects.filter(slug=slug, pk__in=teams_of(owner)).first()
    if found is None or account_of:
        raise RequestError(
            "unknown_team",
            f"You are in no team {slug[:MAX_NAME]!r}.",
            "Give the last part of the address of your team's page, or leave it out.",
            fields={"team": "not a team of yours"},
        )
    return found
