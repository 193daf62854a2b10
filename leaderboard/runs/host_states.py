"""Takes hosts out of service and back into it, and says how pages call them."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser

from leaderboard.kit.plain_names import flaw_of, normal
from leaderboard.kit.request_error import RequestError
from leaderboard.models import HostState, WorkerHost
from leaderboard.models.access import MAX_TITLE
from leaderboard.submissions.moderation import change

ACTS = {
    HostState.SERVING: "enable host",
    HostState.DRAINED: "drain host",
    HostState.DISABLED: "disable host",
}


def put(host: WorkerHost, actor: AbstractBaseUser | None, state: HostState) -> None:
    """Let a host serve, finish only what it has, or do nothing. Nothing is logged where it is so
    already."""
    if host.state != state:
        change(host, actor, ACTS[state], state=state.value)


def rename(host: WorkerHost, actor: AbstractBaseUser | None, title: str) -> None:
    """Have pages call a host so; by its own name where the title is empty. Raises RequestError."""
    title = normal(title)
    if flaw := flaw_of(title):
        message = f"The name has {flaw}."
        raise RequestError("misleading_text", message, "Write it in plain letters.")
    if len(title) > MAX_TITLE:
        message = f"The name has {len(title)} characters; {MAX_TITLE} fit."
        raise RequestError("bad_title", message, "Shorten it.")
    if host.title != title:
        change(host, actor, "rename host", title=title)
