"""Decides who may call what, and how often. Nothing here touches the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.cache import caches
from django.db import transaction
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from leaderboard.kit.client_address import client_address
from leaderboard.models import ApiToken, Ban, Scope, Team

NO_LONGER = "The token's owner is no longer active."
NOBODY = "No owner of the token's team is active."

if TYPE_CHECKING:  # rest_framework.views imports this module while it is itself being imported
    from rest_framework.views import APIView


class TokenAuthentication(BaseAuthentication):
    """Reads `Authorization: Bearer <token>`. The token of a worker has no user."""

    def authenticate(
        self, request: Request
    ) -> tuple[AbstractBaseUser | AnonymousUser, ApiToken] | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        kind, _, text = header.partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            raise AuthenticationFailed("The Authorization header is not `Bearer <token>`.")
        token = ApiToken.objects.matching(text.strip())
        if token is None:
            raise AuthenticationFailed("The token is unknown, expired or revoked.")
        if token.owner is not None and (why := _why_closed(token.owner)):
            raise AuthenticationFailed(why)
        ApiToken.objects.note_use(token)
        return token.owner or AnonymousUser(), token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _why_closed(owner: AbstractBaseUser) -> str:
    """Return why an account may do nothing: who holds its tokens may know why it is banned. Empty
    for one that may. That of a team may what somebody answers for who may."""
    if owner.is_active:
        team: Team | None = getattr(owner, "team_of", None)
        return "" if team is None or team.is_answered_for() else NOBODY
    ban = Ban.objects.standing().filter(user_id=owner.pk).first()
    return f"The token's owner is banned: {ban.reason}" if ban else NO_LONGER


def scope_of(request: Request) -> str | None:
    return request.auth.scope if isinstance(request.auth, ApiToken) else None


class ReadOrSubmit(BasePermission):
    """Lets anybody read what is public; writing needs a token with the scope `submit`."""

    message = "This needs a token with the scope `submit`."

    def has_permission(self, request: Request, view: APIView) -> bool:
        return request.method in SAFE_METHODS or scope_of(request) == Scope.SUBMIT


class WorkerOnly(BasePermission):
    message = "This needs a token with the scope `worker`."

    def has_permission(self, request: Request, view: APIView) -> bool:
        return scope_of(request) == Scope.WORKER


def _person_of(token: object) -> int | None:
    return token.person if isinstance(token, ApiToken) else None


class _Throttle(SimpleRateThrottle):
    """Counts by person, whatever tokens and teams they have; by address where there is none."""

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        if not self.applies_to(request):
            return None
        person = _person_of(request.auth)
        ident = f"user-{person}" if person else self.get_ident(request)
        return self.cache_format % {"scope": self.scope, "ident": ident}

    def get_ident(self, request: Request) -> str:
        return client_address(request.META)

    def applies_to(self, request: Request) -> bool:
        raise NotImplementedError


class ReadThrottle(_Throttle):
    """Counts in each process by itself: counted together, reads are slower (docs/settings.md)."""

    scope = "read"
    cache = caches["process"]

    def applies_to(self, request: Request) -> bool:
        return request.method in SAFE_METHODS


class TrainingThrottle(_Throttle):
    """Bounds requests of training, in each process by itself: judgements in flight are its limit,
    this one stops floods."""

    scope = "training"
    cache = caches["process"]

    def applies_to(self, request: Request) -> bool:
        return True


class SubmitThrottle(_Throttle):
    """Counts in the cache that all processes share, one request of a person after the other."""

    scope = "submit"
    cache = caches["default"]

    def allow_request(self, request: Request, view: APIView) -> bool:
        if not self.applies_to(request):
            return True
        with transaction.atomic():
            if person := _person_of(request.auth):
                list(get_user_model().objects.select_for_update().filter(pk=person))
            return super().allow_request(request, view)

    def applies_to(self, request: Request) -> bool:
        return request.method not in SAFE_METHODS
