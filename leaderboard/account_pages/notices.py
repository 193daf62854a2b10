"""Serves the page on which a user chooses what to be told, and their own feed."""

from __future__ import annotations

import hashlib
import secrets
from urllib.parse import urlsplit

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.feedgenerator import Atom1Feed
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from leaderboard.delivery.pages import origin
from leaderboard.kit.links import url
from leaderboard.kit.visible import visible
from leaderboard.models.notices import Event, Notice, NoticeChoice
from leaderboard.runs import webhooks
from leaderboard.runs.addresses import confirmed_address
from leaderboard.runs.notices import subject_of
from leaderboard.submissions.metadata import is_link

MOST = 50


class NoticeForm(forms.Form):
    mailed = forms.MultipleChoiceField(
        choices=Event.choices,
        required=False,
        label="By mail",
        widget=forms.CheckboxSelectMultiple,
    )
    webhook = forms.CharField(
        required=False,
        max_length=200,
        label="Webhook",
        widget=forms.URLInput(attrs={"placeholder": "https://"}),
        help_text="Every notice is posted there as JSON, signed. Empty: nowhere.",
    )

    def clean_webhook(self) -> str:
        address = str(self.cleaned_data["webhook"])
        if address and not is_webhook(address):
            raise forms.ValidationError(
                "Give an address that begins with https://, in ASCII, without a user or a port."
            )
        return address


def is_webhook(address: str) -> bool:
    try:
        is_usual = urlsplit(address).port in (None, webhooks.PORT)
    except ValueError:
        return False
    return is_usual and is_link(address) and "#" not in address


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def notices(request: HttpRequest) -> HttpResponse:
    """Show and take the choice; the secrets of a new webhook or feed are shown this once."""
    choice = NoticeChoice.of(request.user.pk)
    told = {"saved": "", "secret": "", "feed": ""}
    form = NoticeForm(initial={"mailed": choice.mailed, "webhook": choice.webhook})
    if request.method == "POST" and "feed" in request.POST:
        told["feed"] = request.build_absolute_uri(url("own-feed", new_feed(choice)))
    elif request.method == "POST":
        form = NoticeForm(request.POST)
        if form.is_valid():
            told |= {"saved": "yes", "secret": stored(choice, form)}
    assert request.user.is_authenticated
    context = {
        "section": "account",
        "form": form,
        "told": told,
        "choice": choice,
        "address": confirmed_address(request.user),
        "notices": list(newest(choice.owner_id)),
    }
    return render(request, "notices.html", context, status=400 if form.errors else 200)


def stored(choice: NoticeChoice, form: NoticeForm) -> str:
    """Store a valid form; return the secret of a webhook that is new, or nothing."""
    data = form.cleaned_data
    is_new = data["webhook"] != choice.webhook
    choice.mailed, choice.webhook, choice.webhook_off = data["mailed"], data["webhook"], ""
    if is_new:
        choice.webhook_salt = secrets.token_urlsafe(32)
    choice.save()
    return webhooks.secret_of(choice.webhook_salt) if is_new and choice.webhook else ""


def new_feed(choice: NoticeChoice) -> str:
    """Return the secret of a feed's new address; that of before ends."""
    secret = secrets.token_urlsafe(32)
    choice.feed_digest = hashlib.sha256(secret.encode()).hexdigest()
    choice.save()
    return secret


def newest(owner_id: int) -> list[Notice]:
    return list(Notice.objects.filter(owner=owner_id).select_related("submission__model")[:MOST])


@never_cache
@require_safe
def feed(request: HttpRequest, secret: str) -> HttpResponse:
    digest = hashlib.sha256(secret.encode()).hexdigest()
    choice = NoticeChoice.objects.filter(feed_digest=digest, owner__is_active=True).first()
    if choice is None:
        raise Http404
    body = as_atom(newest(choice.owner_id), origin(request))
    headers = {"X-Robots-Tag": "noindex", "Referrer-Policy": "no-referrer"}
    return HttpResponse(body, content_type="application/atom+xml; charset=utf-8", headers=headers)


def as_atom(rows: list[Notice], site: str) -> str:
    """Return the XML; what it forbids in names is written out."""
    made = Atom1Feed(title="Your PKB submissions", link=f"{site}{url('account')}", description="")
    for row in rows:
        made.add_item(
            title=subject_of(row),
            link=f"{site}{row.submission.get_absolute_url()}",
            description=visible(row.text),
            pubdate=row.created_at,
            updateddate=row.created_at,
            categories=(row.kind,),
            unique_id=f"{site}{row.submission.get_absolute_url()}#notice-{row.pk}",
        )
    return str(made.writeString("utf-8"))
