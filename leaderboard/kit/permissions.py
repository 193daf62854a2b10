"""Says who of the staff may do what. Used by pages, the API and the tables.

To be of the staff opens nothing by itself: each thing has a permission, which groups give.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache

View = Callable[..., HttpResponse]
READ_ALL = "leaderboard.view_submission"
EDIT_ALL = "leaderboard.change_submission"
JUDGE_AGAIN = "leaderboard.add_run"
END_RUNS = "leaderboard.change_run"
RUN_HOSTS = "leaderboard.change_workerhost"
REVOKE_TOKENS = "leaderboard.change_apitoken"
READ_LOG = "leaderboard.view_auditentry"
RULE = "leaderboard.add_ruling"
BAN = "leaderboard.add_ban"


def may(user: AbstractBaseUser | AnonymousUser, permission: str) -> bool:
    """Return whether a user is of the staff and has a permission. Who is not of the staff costs no
    query."""
    is_staff = user.is_active and getattr(user, "is_staff", False)
    return bool(is_staff and user.has_perm(permission))  # type: ignore[union-attr]


def staff_page(permission: str) -> Callable[[View], View]:
    """Keep a page for staff with a permission: others sign in first, or are refused."""

    def decorate(view: View) -> View:
        @never_cache
        @login_required
        @functools.wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
            if not may(request.user, permission):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return guarded

    return decorate
