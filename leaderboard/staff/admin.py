"""Shows staff everything in Django's admin, where little can be changed and nothing be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponseRedirect

from leaderboard.kit.links import url
from leaderboard.kit.permissions import EDIT_ALL, JUDGE_AGAIN, REVOKE_TOKENS, may
from leaderboard.kit.plain_names import flaw_of, normal
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    ApiToken,
    AuditEntry,
    Ban,
    Complaint,
    Decline,
    Hardware,
    Kernel,
    LanguageModel,
    Moderation,
    Problem,
    PublishedResult,
    RefusedReport,
    Ruling,
    Run,
    Submission,
    Visibility,
    WorkerHost,
)
from leaderboard.read_model import calibration
from leaderboard.submissions import moderation

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    Form = ModelForm[Any]
else:  # at run time Django's classes take no parameters
    ModelAdmin, Form = admin.ModelAdmin, ModelForm


class ReadOnly(ModelAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class Editable(ReadOnly):
    """Lets staff who have that permission change some fields."""

    editable: tuple[str, ...] = ()

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super(ReadOnly, self).has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        fields = [field.name for field in self.model._meta.fields]
        return [name for name in fields if name not in self.editable]

    def save_model(self, request: HttpRequest, obj: Any, form: Form, change: bool) -> None:
        """Save through moderation.py, which keeps the audit log."""
        assert request.user.is_authenticated
        changed = {name: form.cleaned_data[name] for name in form.changed_data}
        if changed:
            moderation.edit(obj, request.user, **changed)


@admin.register(Submission)
class SubmissionAdmin(Editable):
    editable = ("visibility", "moderation", "moderation_reason")
    list_display = ("id", "model", "harness", "owner", "visibility", "trust", "moderation")
    list_filter = ("moderation", "visibility", "harness", "is_practice")
    actions = ("judge_again",)

    def has_judge_again_permission(self, request: HttpRequest) -> bool:
        return may(request.user, JUDGE_AGAIN)

    @admin.action(
        description="Judge again what is stale of the chosen one", permissions=["judge_again"]
    )
    def judge_again(
        self, request: HttpRequest, chosen: QuerySet[Submission]
    ) -> HttpResponseRedirect | None:
        """Lead to the page that shows what would be queued, and has the button."""
        numbers = list(chosen.values_list("pk", flat=True)[:2])
        if len(numbers) == 1:
            return HttpResponseRedirect(f"{url('rejudge')}?submission={numbers[0]}")
        self.message_user(request, "Choose one submission.", messages.WARNING)
        return None

    def save_model(self, request: HttpRequest, obj: Submission, form: Form, change: bool) -> None:
        assert request.user.is_authenticated
        if "visibility" in form.changed_data:
            moderation.show(obj, request.user, Visibility(obj.visibility))
        if {"moderation", "moderation_reason"} & set(form.changed_data):
            state = Moderation(obj.moderation)
            try:
                moderation.moderate(obj, request.user, state, obj.moderation_reason)
            except RequestError as error:
                self.message_user(request, f"{error.message} {error.fix}", messages.ERROR)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = (
        *("prefix", "scope", "name", "owner", "queues", "hosts"),
        *("created_at", "expires_at", "revoked_at"),
    )
    exclude = ("digest",)
    actions = ("revoke", "invalidate")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return may(request.user, REVOKE_TOKENS)

    def has_invalidate_permission(self, request: HttpRequest) -> bool:
        return may(request.user, EDIT_ALL)

    @admin.action(description="Revoke the chosen tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        assert request.user.is_authenticated
        for token in tokens:
            moderation.revoke(token, request.user)

    @admin.action(
        description="Invalidate all that was judged with them", permissions=["invalidate"]
    )
    def invalidate(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        assert request.user.is_authenticated
        judged = Run.objects.filter(token__in=tokens)
        found = moderation.invalidate_judged(judged, request.user, moderation.NOT_TRUSTED)
        self.message_user(request, f"{len(found)} submissions are invalidated.")


class LanguageModelForm(Form):
    def clean_name(self) -> str:
        return _plain(self.cleaned_data["name"])

    def clean_vendor(self) -> str:
        return _plain(self.cleaned_data["vendor"])


def _plain(name: str) -> str:
    """Refuse a name that could be taken for another."""
    if flaw := flaw_of(normal(name)):
        raise ValidationError(f"It has {flaw}.")
    return normal(name)


@admin.register(LanguageModel)
class LanguageModelAdmin(Editable):
    form = LanguageModelForm
    editable = ("name", "vendor", "is_baseline")
    list_display = ("name", "vendor", "slug", "is_baseline")


class HardwareForm(Form):
    def clean_facts(self) -> object:
        """Refuse what the pages of hardware could not show."""
        facts = self.cleaned_data["facts"]
        try:
            calibration.check_facts(facts)
        except calibration.CalibrationError as error:
            raise ValidationError(f"The facts are refused: {error}.") from None
        return facts


@admin.register(Hardware)
class HardwareAdmin(Editable):
    form = HardwareForm
    editable = ("title", "facts")
    list_display = ("slug", "title", "device", "max_world_size")


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ("id", "status", "verdict", "hardware", "tries", "host", "created_at")
    list_filter = ("status", "verdict", "hardware")
    exclude = ("report_packed", "lease_token")
    show_full_result_count = False


@admin.register(Problem)
class ProblemAdmin(ReadOnly):
    list_display = ("number", "slug", "category_title", "scored")


@admin.register(WorkerHost)
class WorkerHostAdmin(ReadOnly):
    list_display = ("host", "queue", "token", "isolation", "judge_version", "last_seen_at")
    list_select_related = ("token",)


@admin.register(Decline)
class DeclineAdmin(ReadOnly):
    list_display = ("run", "host", "reason", "declined_at")


@admin.register(RefusedReport)
class RefusedReportAdmin(ReadOnly):
    list_display = ("refused_at", "host", "token", "run", "code", "reason")
    list_select_related = ("token",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("at", "actor", "action", "subject")


admin.site.register((Kernel, PublishedResult, Complaint, Ruling, Ban), ReadOnly)
