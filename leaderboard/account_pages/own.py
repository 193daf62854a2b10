"""Takes what an owner asks for a submission beside editing it: withdraw it, judge it again."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from leaderboard.account_pages.edit import edited_by, shown
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Submission
from leaderboard.runs import withdrawing
from leaderboard.submissions import editing, rejudging
from leaderboard.submissions.forms import EditForm

Act = Callable[[HttpRequest, Submission, AbstractBaseUser], HttpResponse]


def of_owner(act: Act) -> Callable[[HttpRequest, int], HttpResponse]:
    """Make a view that does this to a submission of who asks, or shows its form with why not."""

    @never_cache
    @login_required
    @require_POST
    def answer(request: HttpRequest, number: int) -> HttpResponse:
        found = edited_by(request, number, editing.is_own)
        assert request.user.is_authenticated
        try:
            return act(request, found, request.user)
        except RequestError as error:
            return shown(request, found, EditForm(found), error=error, status=error.status)

    return answer


@of_owner
def withdraw(request: HttpRequest, found: Submission, owner: AbstractBaseUser) -> HttpResponse:
    withdrawing.withdraw(found, owner, request.POST.get("reason", ""))
    return redirect(found)


@of_owner
def rerun(request: HttpRequest, found: Submission, owner: AbstractBaseUser) -> HttpResponse:
    """Queue what can be judged again, and say what cannot."""
    return shown(request, found, EditForm(found), plan=rejudging.rerun(found, owner))
