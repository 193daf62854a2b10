"""Checks what a submission says of itself, when it is handed in and afterwards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from leaderboard.kit.plain_names import flaw_of
from leaderboard.kit.request_error import Faults, RequestError
from leaderboard.kit.visible import hides
from leaderboard.models import Harness
from leaderboard.models.submissions import MAX_COST_USD

# Printable, but of no address.
NEVER_IN_LINKS = frozenset(' "<>\\^`{|}')


def check_metadata(harness: str, fields: Mapping[str, Any]) -> None:
    """Check `fields` by names of columns; others are not looked at. Raises RequestError with all
    that is wrong."""
    faults = Faults()
    for check in (_check_budget, _check_cost, _check_link, _check_licence):
        with faults.gathered():
            check(harness, fields)
    faults.raise_any()


def _check_budget(harness: str, fields: Mapping[str, Any]) -> None:
    if fields.get("step_budget") is not None and harness != Harness.AGENTIC:
        raise RequestError(
            "bad_step_budget",
            "Only an agentic harness has a step budget.",
            "Leave step_budget out, or say harness=agentic.",
            fields={"step_budget": "only with harness=agentic"},
        )


def _check_cost(harness: str, fields: Mapping[str, Any]) -> None:
    cost = fields.get("cost_usd")
    if cost is not None and not (math.isfinite(cost) and 0 <= cost <= MAX_COST_USD):
        raise RequestError(
            "bad_cost",
            f"A cost lies between 0 and {MAX_COST_USD:.0f} US dollars.",
            "Give what making all kernels of the submission cost, or leave it out.",
            fields={"cost_usd": f"0 to {MAX_COST_USD:.0f}"},
        )


def _check_link(harness: str, fields: Mapping[str, Any]) -> None:
    if fields.get("link") and not is_link(fields["link"]):
        raise RequestError(
            "bad_link",
            "The link is not an address of a page.",
            "Give one like https://example.org/paper: in ASCII, without a user's name.",
            fields={"link": "an address that begins with https://"},
        )


def _check_licence(harness: str, fields: Mapping[str, Any]) -> None:
    """Check that nobody is to be trained on what nobody may read. Raises RequestError."""
    if fields.get("licence") and fields.get("withholds_source"):
        raise RequestError(
            "licence_of_withheld",
            "A source that is withheld cannot be trained on, so it has no licence for that.",
            "Leave licence out, or do not withhold the source.",
            fields={"licence": "only where the source is not withheld"},
        )


def check_names(model: str, vendor: str, notes: str = "") -> None:
    """Check that names cannot be taken for others, and that notes hide nothing. Raises
    RequestError."""
    flaws = {"model": flaw_of(model), "vendor": flaw_of(vendor)}
    if hides(notes):
        flaws["notes"] = "characters that cannot be seen"
    found = {name: flaw for name, flaw in flaws.items() if flaw}
    if found:
        raise RequestError(
            "misleading_text",
            " ".join(f"`{name}` has {flaw}." for name, flaw in found.items()),
            "Write it with the letters that it seems to have, and nothing between them.",
            fields={name: f"has {flaw}" for name, flaw in found.items()},
        )


def check_steps(harness: str, step_budget: int | None, last: int) -> None:
    """Check the `last` step of all attempts against what made them. Raises RequestError."""
    if last > 1 and harness != Harness.AGENTIC:
        raise RequestError(
            "bad_step",
            "Only attempts of an agentic harness have steps.",
            "Say harness=agentic, or leave step out.",
            fields={"step": "only with harness=agentic"},
        )
    if step_budget is not None and last > step_budget:
        raise RequestError(
            "bad_step",
            f"Step {last} is beyond the step budget of {step_budget}.",
            "Give the budget that its harness had, or leave step_budget out.",
            fields={"step_budget": f"there is a step {last}"},
        )


def is_link(text: str) -> bool:
    """Return True if readers may be led there and see where that is."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and not NEVER_IN_LINKS & set(text)
    is_whole = text.startswith("https://") and bool(parts.hostname)
    return is_plain and is_whole and "@" not in parts.netloc
