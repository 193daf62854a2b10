"""Finds what an address of these pages is about: a submission, a kernel's source or a run."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import User
from django.http import Http404
from django.shortcuts import get_object_or_404

from leaderboard.kit.links import url
from leaderboard.models import Run, Source, Submission
from leaderboard.models.teams import Viewer
from leaderboard.submissions.complaints import Subject

KINDS = ("submission", "kernel", "run")


def subject_called(viewer: Viewer, kind: str, key: str) -> Subject:
    """Return what a viewer may see by that address. Raises Http404."""
    seen = Submission.objects.reachable_by(viewer)
    if kind == "submission":
        return get_object_or_404(Submission.objects.at(key, viewer).select_related("model"))
    if kind == "kernel":
        found = Source.objects.filter(pk=key, kernels__submission__in=seen)
        return get_object_or_404(found.distinct())
    if kind == "run":
        return get_object_or_404(Run.objects.filter(kernel__submission__in=seen), pk=_uuid(key))
    raise Http404


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise Http404 from None


def named(subject: Subject) -> dict[str, str]:
    """Return how pages call it, where it is, and its place among these addresses."""
    kind = {Submission: "submission", Source: "kernel", Run: "run"}[type(subject)]
    key = subject.address if isinstance(subject, Submission) else str(subject.pk)
    text = f"{kind} {key[:12] if kind == 'kernel' else key[:8]}"
    places = {name: url(name, kind, key) for name in ("complain", "moderate")}
    return {"kind": kind, "key": key, "text": text, "url": subject.get_absolute_url(), **places}


def owners_of(subject: Subject) -> list[User]:
    """Return who handed it in: several may have handed in one source."""
    if isinstance(subject, Submission):
        own = Submission.objects.filter(pk=subject.pk)
    elif isinstance(subject, Source):
        own = Submission.objects.filter(kernels__source=subject)
    else:
        own = Submission.objects.filter(kernels__runs=subject)
    return list(User.objects.filter(submissions__in=own).distinct().order_by("username")[:20])
