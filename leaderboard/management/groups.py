"""Makes the groups that give staff their permissions: see docs/moderation.md."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.models import Group, Permission
from django.db import transaction

READ = ("submission", "kernel", "run", "problem", "languagemodel", "publishedresult", "auditentry")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "moderators": (
        *(f"view_{name}" for name in (*READ, "complaint", "ruling", "ban")),
        *("change_submission", "change_languagemodel", "change_run", "add_run"),
        *("change_complaint", "add_ruling", "add_ban", "change_ban"),
    ),
    "operators": (
        *(f"view_{name}" for name in (*READ, "workerhost", "apitoken", "decline")),
        *("view_refusedreport", "view_hardware", "change_hardware", "change_workerhost"),
        *("add_apitoken", "change_apitoken", "change_run", "add_run"),
    ),
}


def make() -> list[Group]:
    """Make the groups, each with its permissions and no other; who is in them stays."""
    with transaction.atomic():
        return [_made(name, codenames) for name, codenames in GROUPS.items()]


def _made(name: str, codenames: tuple[str, ...]) -> Group:
    group, _ = Group.objects.get_or_create(name=name)
    known = Permission.objects.filter(content_type__app_label="leaderboard", codename__in=codenames)
    if missing := set(codenames) - set(known.values_list("codename", flat=True)):
        raise LookupError(f"run migrate first: there is no permission {', '.join(sorted(missing))}")
    group.permissions.set(known)
    return group
