"""Stores who belongs together: teams, their members, who is invited."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from leaderboard.kit.links import url
from leaderboard.models.choices import one_of

MAX_NAME = 60
INVITED_FOR = timedelta(days=14)
Viewer = AbstractBaseUser | AnonymousUser


class Role(models.TextChoices):
    """Says what a member may do: an owner invites, and does to its submissions what their owners
    may."""

    OWNER = "owner"
    MEMBER = "member"


class Team(models.Model):
    """Names people who hand in together. `account` is nobody's: it owns the team's tokens, and what
    is handed in with them, so that these outlast any member."""

    slug = models.SlugField(max_length=MAX_NAME, unique=True)
    name = models.CharField(max_length=MAX_NAME)
    account = models.OneToOneField(settings.AUTH_USER_MODEL, models.PROTECT, related_name="team_of")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return url("team", self.slug)

    def is_answered_for(self) -> bool:
        """Return whether an owner of the team can sign in: others may be banned."""
        return self.memberships.filter(role=Role.OWNER, user__is_active=True).exists()


class Membership(models.Model):
    """Records a member, and whether the team's page may name them."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices)
    is_shown = models.BooleanField(default=False)
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("team_id", "since", "pk")
        constraints = (
            one_of("role", Role.choices, "membership_role_known"),
            models.UniqueConstraint(fields=("team", "user"), name="membership_once"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} of {self.team_id}"


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self) -> InvitationQuerySet:
        return self.filter(made_at__gt=timezone.now() - INVITED_FOR)

    def to(self, user: AbstractBaseUser) -> InvitationQuerySet:
        """Return those that are open to a user, whose name is good in any case."""
        return self.open().filter(username__iexact=user.get_username())


class Invitation(models.Model):
    """Records whom a team has invited, by user name, whether or not there is such an account:
    nobody learns by an invitation which names there are."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="invitations")
    username = models.CharField(max_length=150)
    role = models.CharField(max_length=8, choices=Role.choices)
    made_at = models.DateTimeField()

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ("team_id", "username")
        indexes = (models.Index(fields=("username",), name="invitation_of"),)
        constraints = (
            one_of("role", Role.choices, "invitation_role_known"),
            models.UniqueConstraint(fields=("team", "username"), name="invitation_once"),
        )

    def __str__(self) -> str:
        return f"{self.username} to {self.team_id}"


def whose(account: str) -> Coalesce:
    """Return, as a column, the person whose turns and quotas the account in this field uses: of a
    team's account whoever has been an owner of the team for longest, of any other itself."""
    owners = Membership.objects.filter(team__account=OuterRef(account), role=Role.OWNER)
    first = Subquery(owners.order_by("since", "pk").values("user")[:1])
    return Coalesce(first, F(account), output_field=models.BigIntegerField())


def person_of(account: int) -> int:
    """Return that person of one account."""
    found: int = get_user_model().objects.values_list(whose("pk"), flat=True).get(pk=account)
    return found


def accounts_of(person: int) -> list[int]:
    """Return the accounts that use a person's turns and quotas."""
    own = Q(pk=person) | Q(team_of__memberships__user=person)
    named = get_user_model().objects.filter(own).annotate(person=whose("pk"))
    return list(named.filter(person=person).values_list("pk", flat=True))


def teams_of(viewer: Viewer, *roles: Role) -> list[int]:
    """Return the teams whose private submissions a viewer may see; with roles, those in which it
    has one of them."""
    if viewer.pk is None:
        return []
    own = Team.objects.filter(memberships__user=viewer.pk)
    if roles:
        own = own.filter(memberships__user=viewer.pk, memberships__role__in=roles)
    is_its_account = Q(account=viewer.pk) if not roles else Q(pk__in=())
    return list(
        Team.objects.filter(Q(pk__in=own.values("pk")) | is_its_account).values_list(
            "pk", flat=True
        )
    )
