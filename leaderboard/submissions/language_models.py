"""Finds the language model that a submission names."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.kit.request_error import Faults, RequestError
from leaderboard.models import LanguageModel
from leaderboard.submissions.sources import Candidate


def language_model(
    name: str, vendor: str, candidates: Sequence[Candidate], *, hidden_for: int | None
) -> LanguageModel:
    """Return the model of this name; what the site knows of it is not changed by a submission.
    Raises RequestError for a name that is taken, or another vendor than is recorded.

    The vendor that published trees name is that of a new one, and contradicts nothing.
    """
    vendors = {c.tree.vendor for c in candidates if c.tree and c.tree.vendor}
    likely = vendors.pop() if len(vendors) == 1 else ""
    found = LanguageModel.objects.named(name, vendor or likely, hidden_for=hidden_for)
    _check(found, vendor)
    return found


def check_language_model(name: str, vendor: str, *, hidden_for: int | None) -> None:
    """Raise RequestError where `language_model` would, and store nothing."""
    found = LanguageModel.objects.known_by(name, hidden_for=hidden_for)
    if found:
        _check(found, vendor)


def _check(found: LanguageModel, vendor: str) -> None:
    """Check a model that a submission names. Raises RequestError with all that is wrong."""
    faults = Faults()
    with faults.gathered():
        if found.is_baseline:
            raise RequestError(
                "baseline_model",
                f"{found.name} is a baseline of this site: nobody else hands kernels in for it.",
                "Name the model, or the person, that wrote these kernels.",
                fields={"model": "a baseline of this site"},
            )
    with faults.gathered():
        if vendor and found.vendor and vendor.casefold() != found.vendor.casefold():
            raise RequestError(
                "other_vendor",
                f"{found.name} is recorded as a model of {found.vendor}.",
                "Leave vendor out, or give the model a name of its own.",
                fields={"vendor": f"recorded as {found.vendor}"},
            )
    faults.raise_any()
