"""Serves the page on which a submission's owner changes what it says of itself."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from leaderboard.kit.request_error import RequestError
from leaderboard.models import AuditEntry, Moderation, Submission
from leaderboard.models.teams import Viewer
from leaderboard.runs.withdrawing import MAX_REASON
from leaderboard.submissions import editing
from leaderboard.submissions.forms import EditForm, add_field_errors
from leaderboard.submissions.rejudging import Plan

MOST_CHANGES = 20


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, number: int) -> HttpResponse:
    """Show or take the form; somebody else's private submission does not exist for this reader."""
    found = edited_by(request, number, editing.may_edit)
    if request.method == "GET":
        return shown(request, found, EditForm(found))
    form = EditForm(found, request.POST)
    if not form.is_valid():
        return shown(request, found, form, status=400)
    assert request.user.is_authenticated
    try:
        editing.edit(found, request.user, form.values)
    except RequestError as error:
        add_field_errors(form, error.fields)
        return shown(request, found, form, error=error, status=error.status)
    return redirect(found)


def edited_by(
    request: HttpRequest, number: int, may: Callable[[Viewer, Submission], bool]
) -> Submission:
    """Return a submission that this user may do it to. Raises PermissionDenied, and Http404 where
    there is none or nobody else is to know of it."""
    found = get_object_or_404(Submission.objects.at(str(number), request.user))
    if not may(request.user, found):
        raise PermissionDenied
    return found


def shown(
    request: HttpRequest,
    found: Submission,
    form: EditForm,
    *,
    error: RequestError | None = None,
    plan: Plan | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the form; `plan` is what was just queued."""
    context = {
        "section": "account",
        "submission": found,
        "form": form,
        "error": error,
        "plan": plan,
        "is_own": editing.is_own(request.user, found),
        "is_accepted": found.moderation == Moderation.ACCEPTED,
        "max_reason": MAX_REASON,
        "changes": changes_of(found, form),
    }
    return render(request, "edit.html", context, status=status)


def changes_of(found: Submission, form: EditForm) -> list[dict[str, object]]:
    """Return the newest changes, one row for each value."""
    labels = {field.name: field.label for field in form}
    entries = AuditEntry.objects.select_related("actor").filter(
        subject=f"{found._meta.verbose_name} {found.pk}"
    )
    return [
        {
            "at": entry.at,
            "who": _who(entry, found),
            "name": labels.get(name, name.replace("_", " ").capitalize()),
            "before": entry.detail["before"][name],
            "after": after,
        }
        for entry in entries[:MOST_CHANGES]
        for name, after in entry.detail["after"].items()
    ]


def _who(entry: AuditEntry, found: Submission) -> str:
    if entry.actor_id is None:
        return "the site"
    if entry.actor_id == found.owner_id:
        return "owner"
    return "staff" if getattr(entry.actor, "is_staff", False) else "team"
