"""Groups categories into families, and scores rows of the board in each of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from django.http import HttpRequest

from leaderboard.delivery.pages import BadQuery, choice
from leaderboard.metrics import scores
from leaderboard.metrics.board_numbers import NUMBERS
from leaderboard.metrics.scores import Score
from leaderboard.metrics.telling_apart import told_apart
from leaderboard.models.catalogue import category_slug
from leaderboard.read_model import boards
from leaderboard.read_model.boards import BoardRow, Setting
from leaderboard.read_model.filters import (
    SETTING_FILTERS,
    Filter,
    Option,
    harness_filter,
    setting_filters,
)
from leaderboard.read_model.published_claims import Claim, entry_of, every_claim
from leaderboard.read_model.scopes import BoardScope, scope

# What a kind of parallelism divides among GPUs. A category that no family names is with the others.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "The model is divided": (
        *("tensor_parallel", "expert_parallel", "vocab_parallel", "pipeline_parallel"),
    ),
    "The input is divided": (
        *("data_parallel", "context_parallel", "sequence_parallel"),
        *("graph_parallel", "geometric_spatial"),
    ),
    "The training state is divided": ("fsdp_zero",),
    "What all are made of": ("collective_primitive",),
}
OTHERS = "Others"
ALL = "all"
METRICS: Mapping[str, tuple[str, Callable[[Score], float | None]]] = {
    one.key: (one.label, attrgetter(one.of.removeprefix("score.")))
    for one in NUMBERS
    if one.is_share and one.of
}
CATEGORY_PARAMETERS = ("models", "metric", "harness", *SETTING_FILTERS)
BEST_SHOWN, MOST_MODELS = 3, 12


@dataclass(frozen=True, kw_only=True)
class Side:
    """Describes one row of the board as a column: `scores` by category, and over all problems under
    `all`. `how` tells it from others of its model."""

    slug: str
    model: str
    harness: str
    how: str
    url: str
    claimed: bool
    submission: int | None
    baseline: bool
    score: Callable[[], Mapping[str, Score]]

    @functools.cached_property
    def scores(self) -> Mapping[str, Score]:
        """Return the scores, computed for the sides that are shown only."""
        return self.score()

    @property
    def name(self) -> str:
        last = ", published" if self.claimed else ""
        return f"{self.model} ({self.how}{last})"


@dataclass(frozen=True, kw_only=True)
class CategoryQuery:
    """Holds the data and choices that the page of categories and its heat map show."""

    scope: BoardScope
    setting: Setting | None
    metric: str
    entries: tuple[BoardRow, ...]
    claims: tuple[Claim, ...]
    sides: tuple[Side, ...]
    shown: tuple[Side, ...]
    chosen: tuple[str, ...]
    controls: tuple[Filter, ...]

    @property
    def titles(self) -> dict[str, str]:
        """Return titles of the catalogue's categories, then of those that only a publication has
        problems of, by slug."""
        payload = self.claims[0].publication_says if self.claims else {}
        claimed = {category_slug(title): title for title in payload.get("categories", {})}
        return self.scope.titles | claimed


def category_query(request: HttpRequest) -> CategoryQuery:
    """Return the categories, settings, judged and claimed rows that a request asks for, in four
    queries. Raises BadQuery for a bad filter."""
    metric = choice(request, "metric", list(METRICS), "pass1")
    setting, controls = setting_filters(request, boards.known_settings())
    found = scope(request, setting=setting, ranks=setting.world_size if setting else None)
    harness = harness_filter(request)
    ours = (
        boards.judged(setting, found.scored, harness=harness.value, ahead=("by_category",))
        if setting
        else []
    )
    ours = scores.in_order(ours, lambda entry: entry.headline)
    claims = every_claim(harness=harness.value)
    apart = zip(ours, told_apart(ours), strict=True)
    sides = [our_side(entry, how, found) for entry, how in apart]
    sides += [claimed_side(results) for results in by_model(claims)]
    chosen = chosen_models(request, sides)
    return CategoryQuery(
        scope=found,
        setting=setting,
        metric=metric,
        entries=tuple(ours),
        claims=tuple(claims),
        sides=tuple(sides),
        shown=tuple(shown_sides(sides, chosen)),
        chosen=chosen,
        controls=(_metric_filter(metric), harness, *controls),
    )


def chosen_models(request: HttpRequest, sides: Sequence[Side]) -> tuple[str, ...]:
    """Return the slugs of `?models=a,b`. Raises BadQuery for one that has no results here, or for
    too many."""
    text = request.GET.get("models", "")
    chosen = tuple(dict.fromkeys(slug for slug in text.split(",") if slug))
    known = list(dict.fromkeys(side.slug for side in sides))
    for slug in chosen:
        if slug not in known:
            raise BadQuery("models", slug, known[:MOST_MODELS])
    if len(chosen) > MOST_MODELS:
        raise BadQuery("models", text, (f"at most {MOST_MODELS} names with commas between",))
    return chosen


def shown_sides(sides: Sequence[Side], chosen: Sequence[str]) -> list[Side]:
    """Return the sides of the models chosen; without any, the best submissions and the claims that
    state results by category."""
    if chosen:
        return [side for slug in chosen for side in sides if side.slug == slug]
    ours = [side for side in sides if not side.claimed and not side.baseline][:BEST_SHOWN]
    return ours + [side for side in sides if side.claimed and set(side.scores) != {ALL}]


def by_model(claims: Iterable[Claim]) -> list[list[Claim]]:
    """Return the claims grouped by publication, model and harness."""
    groups: dict[tuple[int, str, str], list[Claim]] = {}
    for claim in claims:
        groups.setdefault((claim.publication, claim.slug, claim.harness), []).append(claim)
    return list(groups.values())


def our_side(entry: BoardRow, how: str, found: BoardScope) -> Side:
    def score() -> Mapping[str, Score]:
        by_slug = {slug: entry.score_in(slug, found.sizes[slug]) for slug in found.titles}
        return {**by_slug, ALL: entry.score}

    return Side(
        slug=entry.slug,
        model=entry.model,
        harness=entry.harness,
        how=how,
        url=entry.url,
        claimed=False,
        submission=entry.submission,
        baseline=entry.baseline,
        score=score,
    )


def claimed_side(claims: Sequence[Claim]) -> Side:
    entries = {claim.category or ALL: entry_of(claim) for claim in claims}
    one = next(iter(entries.values()))
    return Side(
        slug=one.slug,
        model=one.model,
        harness=one.harness,
        how=one.harness,
        url=one.url,
        claimed=True,
        submission=None,
        baseline=False,
        score=lambda: {name: entry.score for name, entry in entries.items()},
    )


def family_of(category: str) -> str:
    return next((name for name, members in FAMILIES.items() if category in members), OTHERS)


def families(titles: Iterable[str]) -> dict[str, list[str]]:
    """Return the categories of each family that has some, families in their order."""
    groups: dict[str, list[str]] = {name: [] for name in (*FAMILIES, OTHERS)}
    for category in titles:
        groups[family_of(category)].append(category)
    return {name: members for name, members in groups.items() if members}


def _metric_filter(metric: str) -> Filter:
    options = tuple(Option(value=key, text=text) for key, (text, _) in METRICS.items())
    return Filter(
        name="metric", label="Heat map of", value=metric, options=options, default="pass1"
    )
