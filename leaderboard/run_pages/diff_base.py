"""Finds the source with which a kernel's page compares its own, as its address says: `?diff=`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest

from leaderboard.delivery.pages import BadQuery
from leaderboard.kit.diff import Diff, compared
from leaderboard.kit.links import kernel_at, url
from leaderboard.kit.visible import visible
from leaderboard.models import Kernel, Source, Submission, Visibility
from leaderboard.read_model.withholding import closed_to, open_to
from leaderboard.run_pages.lineage import Sibling, previous

REFERENCE, PREVIOUS = "reference", "previous"
A_DIGEST = "the SHA-256 of another kernel"


@dataclass(frozen=True, kw_only=True)
class DiffBase:
    """Holds the older side. `of` is the private submission that it is of, if it is; what `varies`
    is withheld from some readers."""

    name: str
    text: str
    url: str
    of: Submission | None = None
    varies: bool = False


def requested_base(
    request: HttpRequest, kernel: Kernel, siblings: Sequence[Sibling]
) -> DiffBase | None:
    """Return the base that the address asks for; None where it asks for nothing.

    Raises BadQuery, in the same words for a kernel that is not there and one that is not shown.
    """
    wanted = request.GET.get("diff", "")
    before = previous(siblings)
    found = None
    if wanted == REFERENCE:
        found = _reference(kernel)
    elif wanted == PREVIOUS and before:
        found = _before(request, kernel, before)
    elif re.fullmatch(r"[0-9a-f]{64}", wanted):
        found = _kernel_called(request, wanted, siblings)
    if wanted and found is None:
        allowed = [REFERENCE, *([PREVIOUS] if before else []), A_DIGEST]
        raise BadQuery("diff", wanted, allowed)
    return found


def differences(base: DiffBase, source: str) -> Diff:
    """Compare the texts as they are shown, so that line numbers are those of the page."""
    return compared(visible(base.text), visible(source))


def _reference(kernel: Kernel) -> DiffBase:
    problem = kernel.problem
    page = url("problem", problem.number, problem.slug)
    text = problem.payload["reference_source"]
    return DiffBase(name="the reference", text=text, url=f"{page}#reference")


def _before(request: HttpRequest, kernel: Kernel, before: Sibling) -> DiffBase | None:
    submission = kernel.submission
    is_private = submission.visibility == Visibility.PRIVATE
    text = Source.objects.get(pk=before.digest).text
    is_withheld = submission.withholds_source
    if text is None or (is_withheld and not open_to(request.user, [before.digest])):
        return None
    return DiffBase(
        name=f"attempt {before.attempt}, step {before.step}",
        text=text,
        url=kernel_at(before.digest, before.run),
        of=submission if is_private else None,
        varies=is_withheld,
    )


def _kernel_called(
    request: HttpRequest, digest: str, siblings: Sequence[Sibling]
) -> DiffBase | None:
    """Name a public use before an unlisted one, and a private one to its owner only."""
    uses = Kernel.objects.filter(source=digest).select_related("submission__model", "source")
    shared = uses.exclude(submission__visibility=Visibility.PRIVATE)
    found = shared.order_by("submission__visibility", "pk").first()
    of = None
    if found is None:
        found = uses.filter(submission__in=Submission.objects.reachable_by(request.user)).first()
        of = found.submission if found else None
    text = found.source.text if found else None
    if found is None or text is None or closed_to(request.user, [found]):
        return None
    return DiffBase(
        name=f"kernel {digest[:10]} by {found.submission.model.name}",
        text=text,
        url=kernel_at(digest, next((one.run for one in siblings if one.digest == digest), None)),
        of=of,
        varies=found.submission.withholds_source,
    )
