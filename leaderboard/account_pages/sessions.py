"""Ends single sessions of an account."""

from __future__ import annotations

from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST


@require_POST
@login_required
def end_session(request: HttpRequest, number: int) -> HttpResponse:
    """End a session of this account, also the one that asks. 404 where it is none of its own."""
    session = get_object_or_404(UserSession, pk=number, user_id=request.user.pk)
    session.end()
    messages.success(request, "The session has ended.")
    return redirect("usersessions_list")
