"""Shows models by category: where each succeeds, ours beside the published claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.http import HttpRequest
from django.utils.safestring import SafeString

from leaderboard.board_pages.catalogue_figures import catalogue_frames
from leaderboard.board_pages.category_figures import heat_frame
from leaderboard.board_pages.taxonomy import (
    ALL,
    CATEGORY_PARAMETERS,
    METRICS,
    CategoryQuery,
    Side,
    category_query,
    families,
)
from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Page, Table, canonical_query, public_page
from leaderboard.kit.json_types import JsonObject
from leaderboard.kit.links import category_url, url
from leaderboard.metrics.scores import Score
from leaderboard.read_model.filters import SETTING_FILTERS, count_phrase
from leaderboard.read_model.published_claims import SIZE_CURVES, Claim
from leaderboard.read_model.scopes import BoardScope

RECORD_COLUMNS = ("model", "harness", "claimed", "category", "problems", *METRICS)


@public_page(*CATEGORY_PARAMETERS)
def categories(request: HttpRequest) -> Page:
    query = category_query(request)
    address = canonical_query(request, CATEGORY_PARAMETERS)
    where = canonical_query(request, (*SETTING_FILTERS,))
    records = (_record(side, name) for side in query.shown for name in side.scores)
    context = {
        "page_url": url("categories"),
        "filters": query.controls,
        "kept": [("models", ",".join(query.chosen))] if query.chosen else [],
        "tree": tree(query.scope, where),
        "picker": picker(query, address),
        "heat": heat_frame(query, address),
        "catalogue": catalogue_frames(query.scope, address),
        "showing": query.setting,
        "said": count_phrase(len(query.shown), "column"),
        **table_context(query, where),
        **publication_context(query.claims),
    }
    return Page(
        template="categories.html",
        section="categories",
        context=context,
        data=lambda: {"setting": query.setting and vars(query.setting), "rows": list(records)},
        table=Table(columns=RECORD_COLUMNS, rows=(list(record.values()) for record in records)),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text="Categories")),
    )


def tree(found: BoardScope, where: str) -> list[dict[str, object]]:
    """Return families of categories, with a mark for each problem: solved, scored, not scored."""
    solved = Counter(one.category for one in found.every if one.scored and one.solved)

    def leaf(slug: str) -> dict[str, object]:
        done, scored, total = solved[slug], found.sizes[slug], found.totals[slug]
        return {
            "title": found.titles[slug],
            "url": category_url(slug, where),
            "solved": done,
            "scored": scored,
            "unscored": total - scored,
            "total": total,
            "marks": cells.unit_marks(done, scored - done, total - scored),
        }

    groups = families(found.titles)
    return [{"name": name, "leaves": [leaf(slug) for slug in own]} for name, own in groups.items()]


class Pick(NamedTuple):
    """Describes a model to choose: `url` shows it too, or no longer if it is shown."""

    model: str
    url: str
    is_shown: bool


def picker(query: CategoryQuery, address: str) -> list[Pick]:
    """Return every model as a link that adds it to those shown, or takes it out."""
    names = {side.slug: side.model for side in query.sides}
    shown = list(dict.fromkeys(side.slug for side in query.shown))
    rest = "&".join(part for part in address.split("&") if part and not part.startswith("models="))
    page = url("categories")
    made: list[Pick] = []
    for slug, model in names.items():
        kept = [one for one in shown if one != slug] if slug in shown else [*shown, slug]
        parts = [f"models={','.join(kept)}" if kept else "", rest]
        tail = "&".join(part for part in parts if part)
        made.append(Pick(model, f"{page}?{tail}" if tail else page, slug in shown))
    return made


def table_context(query: CategoryQuery, where: str) -> dict[str, object]:
    """Return a row for each category, with two cells for each side: pass, and fast."""
    titles = query.titles
    ours = [side for side in query.shown if not side.claimed]
    theirs = [side for side in query.shown if side.claimed]
    claimed = {claim.category or ALL: claim.problems for claim in query.claims}
    sizes = {**query.scope.sizes, ALL: query.scope.scored}
    rows = [
        {
            "title": titles.get(name, "All"),
            "url": category_url(name, where) if name in sizes and name != ALL else "",
            "is_all": name == ALL,
            "cells": _cells(name, ours, sizes if ours else None)
            + _cells(name, theirs, claimed if theirs else None),
        }
        for name in (*titles, ALL)
    ]
    return {
        "ours": ours,
        "theirs": theirs,
        "ours_wide": 2 * len(ours) + 1,
        "theirs_wide": 2 * len(theirs) + 1,
        "rows": rows,
    }


def _cells(name: str, sides: Sequence[Side], sizes: Mapping[str, int] | None) -> SafeString:
    """Return a cell with the number of problems, then each side's counts; nothing without sides."""
    if sizes is None:
        return cells.joined([])
    made = [cells.count_cell(sizes.get(name))]
    for side in sides:
        made += _changes(side.scores.get(name))
    return cells.joined(made)


def _changes(score: Score | None) -> list[SafeString]:
    """Return problems solved with one attempt and with k, as publications give them: passing, then
    fast."""
    if score is None or score.pass_at_1 is None:
        return [cells.change_cell(None, None)] * 2
    n = score.scored
    passing = (score.pass_at_1 * n, _times(score.pass_at_k, n))
    fast = (_times(score.fast_at_1, n), _times(score.fast_at_k, n))
    return [cells.change_cell(*passing), cells.change_cell(*fast)]


def _times(share: float | None, n: int) -> float | None:
    return None if share is None else share * n


def publication_context(claims: Sequence[Claim]) -> dict[str, object]:
    """Return the notes below the table: where claims come from and under which setting."""
    if not claims:
        none = "No published results have been imported."
        nothing: dict[str, object] = {"note_counts": "", "setting": [], "agentic": []}
        return {"citation": none, "claimed": [], "curves": [], **nothing}
    payload = claims[0].publication_says
    setting = payload.get("setting", {})
    return {
        "citation": claims[0].citation,
        "note_counts": payload.get("note_counts", ""),
        "setting": [{"name": name, "value": value} for name, value in setting.items()],
        "claimed": claimed_in_words(payload),
        "curves": [one for one in payload.get(SIZE_CURVES, ()) if one.get("problem")],
        "agentic": [{"model": name, **row} for name, row in payload.get("agentic", {}).items()],
    }


def claimed_in_words(payload: JsonObject) -> list[str]:
    """Return what a publication says of rooflines and mechanisms, a sentence each."""
    told, said_of = payload.get("roofline_claims", {}), payload.get("mechanisms", "")
    found = []
    if share := told.get("baselines_below_half_of_peak"):
        found.append(f"Rooflines: {share} reach less than half of the hardware's peak.")
    if example := told.get("example"):
        found.append(
            f"{example['problem']}: a generated kernel took {example['generated_us']:g} µs, "
            f"the reference {example['reference_us']:g} µs; "
            f"the roofline is {example['roofline_us']:g} µs."
        )
    if said_of:
        found.append(f"Mechanisms: {said_of}.")
    return found


def _record(side: Side, name: str) -> dict[str, object]:
    score = side.scores[name]
    return {
        "model": side.model,
        "harness": side.harness,
        "claimed": side.claimed,
        "category": name,
        "problems": score.scored,
        **{key: value(score) for key, (_, value) in METRICS.items()},
    }
