"""Serves the page on which moderators rule on a submission, a kernel's source or a run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from leaderboard.kit.links import url
from leaderboard.kit.permissions import BAN, EDIT_ALL, JUDGE_AGAIN, RULE, may, staff_page
from leaderboard.kit.request_error import RequestError
from leaderboard.models import AuditEntry, Moderation, Run, Source, Submission
from leaderboard.models.rulings import MAX_REASON
from leaderboard.staff.subjects import named, owners_of, subject_called
from leaderboard.submissions import complaints, moderation, rulings
from leaderboard.submissions.complaints import Subject

MOST_SHOWN = 20
STATES = (Moderation.ACCEPTED, Moderation.DISPUTED, Moderation.INVALIDATED)


@staff_page(RULE)
@require_http_methods(["GET", "POST"])
def moderate(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    """Show what is known against it and what staff said, or rule."""
    subject = subject_called(request.user, kind, key)
    if request.method == "GET":
        return _page(request, subject)
    try:
        _rule(request, subject)
    except RequestError as error:
        return _page(request, subject, error)
    return redirect(request.path)


def _rule(request: HttpRequest, subject: Subject) -> None:
    assert request.user.is_authenticated
    word, reason = request.POST.get("moderation", ""), request.POST.get("reason", "")
    if word not in STATES:
        raise RequestError("bad_moderation", f"Say one of: {', '.join(STATES)}.", "Choose one.")
    if not isinstance(subject, Submission):
        rulings.rule(subject, request.user, Moderation(word), reason)
        return
    if not may(request.user, EDIT_ALL):
        message = f"To rule on whole submissions needs the permission {EDIT_ALL}."
        raise RequestError("not_permitted", message, "Ask an operator.", status=403)
    if word != Moderation.ACCEPTED:
        rulings.checked_reason(reason)
    moderation.moderate(subject, request.user, Moderation(word), reason)


def _page(
    request: HttpRequest, subject: Subject, error: RequestError | None = None
) -> HttpResponse:
    shown = named(subject)
    now, reason = _standing(subject)
    logged = f"{subject._meta.verbose_name} {subject.pk}"
    context = {
        "section": "account",
        "subject": shown,
        "now": now,
        "reason": request.POST.get("reason", reason),
        "states": STATES,
        "max_reason": MAX_REASON,
        "complaints": complaints.about(subject).select_related("by")[:MOST_SHOWN],
        "entries": AuditEntry.objects.filter(subject=logged).select_related("actor")[:MOST_SHOWN],
        "owners": owners_of(subject),
        "may_ban": may(request.user, BAN),
        "rejudge": _rejudge(request, subject),
        "error": error,
    }
    return render(request, "staff/moderate.html", context, status=error.status if error else 200)


def _standing(subject: Subject) -> tuple[str, str]:
    """Return how staff ruled on it, and the reason."""
    if isinstance(subject, Submission):
        return subject.moderation, subject.moderation_reason
    found = rulings.ruling_on(subject)
    return (found.moderation, found.reason) if found else (Moderation.ACCEPTED.value, "")


def _rejudge(request: HttpRequest, subject: Subject) -> str:
    """Return where its results can be judged again; empty for who may not, and for a source."""
    if not may(request.user, JUDGE_AGAIN) or isinstance(subject, Source):
        return ""
    number = subject.kernel.submission_id if isinstance(subject, Run) else subject.pk
    return f"{url('rejudge')}?submission={number}&which=all"
