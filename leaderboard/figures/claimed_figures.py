"""Turns published claims into rows of the board's figures."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.figures.charts.boards import ModeCounts
from leaderboard.figures.charts.curves import Chances, Curve
from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.links import url
from leaderboard.metrics import scores
from leaderboard.models.choices import Harness
from leaderboard.read_model.published_claims import Claim

# Keys of a publication's file.
CURVES, MODES = "fast_p_curve_read_off_plot", "failure_modes_zero_shot"
READ_OFF = (
    " Dotted: published; open points were read off the plot, full ones are its authors' counts."
)


def curves(claims: Sequence[Claim]) -> list[Curve]:
    """Return the published curves. Where a claim counts, at p = 0 and 1, its count stands in place
    of what was read off the plot: one fact has one value."""
    thresholds = claims[0].publication_says.get(CURVES, {}).get("p", ()) if claims else ()
    counted = {claim.model: _counted(claim) for claim in claims if _is_plotted(claim)}
    made = []
    for name, shares in _stated(claims, CURVES).items():
        known = counted.get(name, {})
        pairs = zip(thresholds, shares, strict=True)
        made.append(
            Curve(
                model=name,
                name=name,
                thresholds=tuple(thresholds),
                shares=tuple(known.get(float(p), share) for p, share in pairs),
                published=True,
                counted=frozenset(known),
                link=next(url("model", claim.slug) for claim in claims if claim.model == name),
            )
        )
    return made


def _counted(claim: Claim) -> dict[float, float]:
    n = claim.problems
    return {0.0: claim.correct_at_1 / n, 1.0: claim.fast_at_1 / n}


def _is_plotted(claim: Claim) -> bool:
    """Return whether a claim is of the harness that the published plot is of."""
    return claim.harness == Harness.ZERO_SHOT


def chances(claims: Sequence[Claim], p: float) -> list[Chances]:
    """Return the chances with one sample and with three, where both were published; how many are
    fast is known at p = 1 alone."""
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
        for name, counts in _stated(claims, MODES).items()
    ]


def _stated(claims: Sequence[Claim], key: str) -> JsonDict:
    """Return the values that a publication states under `key` for models claimed here, by model;
    none for claims of one category, since it states them over all problems."""
    if not claims or claims[0].category is not None:
        return {}
    stated = claims[0].publication_says.get(key, {})
    names = dict.fromkeys(claim.model for claim in _best_first(claims))
    return {name: stated[name] for name in names if name in stated}


def _best_first(claims: Sequence[Claim]) -> list[Claim]:
    """Return claims as a board places them; a publication is stored without the order of its
    names."""
    return scores.in_order(claims, lambda claim: claim.fast_at_1)
