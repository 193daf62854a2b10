"""What publications tell of models, as rows of the board's figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaderboard.charts.boards import Chances, Curve, ModeCounts
from leaderboard.metrics import scores
from leaderboard.read_model.published_claims import Claim

# Where a publication's file tells them.
CURVES, MODES = "fast_p_curve_read_off_plot", "failure_modes_zero_shot"


def curves(claims: Sequence[Claim]) -> list[Curve]:
    thresholds = claims[0].publication_says.get(CURVES, {}).get("p", ()) if claims else ()
    return [
        Curve(
            model=name,
            name=name,
            thresholds=tuple(thresholds),
            shares=tuple(shares),
            published=True,
        )
        for name, shares in _told(claims, CURVES).items()
    ]


def chances(claims: Sequence[Claim], p: float) -> list[Chances]:
    """Of one sample and of three, where both were published; how many are fast is known at 1."""
    return [
        Chances(
            model=claim.model,
            name=f"{claim.model} ({claim.harness}, published)",
            samples=(1, 3),
            passing=(claim.correct_at_1 / claim.problems, claim.correct_at_3 / claim.problems),
            fast=_fast_of(claim) if p == 1 else (),
            published=True,
        )
        for claim in _best_first(claims)
        if claim.correct_at_3 is not None
    ]


def _fast_of(claim: Claim) -> tuple[float | None, ...]:
    at_3 = None if claim.fast_at_3 is None else claim.fast_at_3 / claim.problems
    return claim.fast_at_1 / claim.problems, at_3


def mode_counts(claims: Sequence[Claim]) -> list[ModeCounts]:
    order = claims[0].publication_says.get(MODES, {}).get("order", ()) if claims else ()
    return [
        ModeCounts(name=f"{name} (published)", counts=dict(zip(order, counts, strict=True)))
        for name, counts in _told(claims, MODES).items()
    ]


def _told(claims: Sequence[Claim], key: str) -> dict[str, Sequence[Any]]:
    """What a publication tells of all problems, by the names of models that are claimed here."""
    if not claims or claims[0].category is not None:
        return {}
    told = claims[0].publication_says.get(key, {})
    names = dict.fromkeys(claim.model for claim in _best_first(claims))
    return {name: told[name] for name in names if name in told}


def _best_first(claims: Sequence[Claim]) -> list[Claim]:
    """As a board places them; a publication is stored without the order of its names."""
    return scores.in_order(claims, lambda claim: claim.fast_at_1)
