"""Models by category: where each succeeds, ours beside the published claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from leaderboard import boards, cells, scores
from leaderboard.boards import Entry
from leaderboard.filters import (
    SETTING_FILTERS,
    Filter,
    Option,
    Scope,
    harness_filter,
    said,
    scope,
    setting_filters,
)
from leaderboard.models import PublishedResult
from leaderboard.pages import Crumb, Page, Table, choice, public_page
from leaderboard.published import category_slug
from leaderboard.scores import Score

METRICS: Mapping[str, tuple[str, Callable[[Score], float | None]]] = {
    "pass1": ("pass@1", lambda score: score.pass_at_1),
    "passk": ("pass@k", lambda score: score.pass_at_k),
    "fast1": ("fast₁@1", lambda score: score.fast_at_1),
    "fastk": ("fast₁@k", lambda score: score.fast_at_k),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model; `shares` by category, and over all problems under `all`."""

    model: str
    harness: str
    url: str
    claimed: bool
    shares: Mapping[str, float | None]


@public_page("metric", "harness", *SETTING_FILTERS)
def categories(request: HttpRequest) -> Page:
    metric = choice(request, "metric", list(METRICS), "pass1")
    found = scope(request)
    setting, controls = setting_filters(request, boards.known_settings())
    harness = harness_filter(request)
    ours = boards.judged(setting, found.scored, harness=harness.value) if setting else []
    claims = claimed_results(harness.value)
    titles = all_titles(found, claims)
    names = (*titles, "all")
    rows = [our_row(entry, metric, found) for entry in ours]
    rows += [claimed_row(results, metric) for results in by_model(claims)]
    context = {
        "page_url": reverse("categories"),
        "filters": [_metric_filter(metric), harness, *controls],
        "metric_text": METRICS[metric][0],
        "categories": list(titles.values()),
        "our_sizes": _counts({**found.sizes, "all": found.scored}, names),
        "their_sizes": _counts({r.category or "all": r.problems for r in claims}, names),
        "span": len(names) + 2,
        "ours": [_drawn(row, names) for row in rows if not row.claimed],
        "published": [_drawn(row, names) for row in rows if row.claimed],
        "said": said(len(rows), "row"),
        **publication_context(claims),
    }
    columns = ("model", "harness", "claimed", *names)
    records = [_record(row, names) for row in rows]
    return Page(
        template="categories.html",
        section="categories",
        context=context,
        data={"metric": metric, "setting": setting and vars(setting), "rows": records},
        table=Table(columns=columns, rows=[list(record.values()) for record in records]),
        crumbs=(Crumb(text="Leaderboard", url=reverse("board")), Crumb(text="Categories")),
    )


def claimed_results(harness: str) -> list[PublishedResult]:
    rows = PublishedResult.objects.select_related("model", "publication")
    return list(rows.filter(harness=harness) if harness else rows)


def by_model(claims: Sequence[PublishedResult]) -> list[list[PublishedResult]]:
    """Claims of one publication, model and harness together."""
    groups: dict[tuple[int, int, str], list[PublishedResult]] = {}
    for result in claims:
        groups.setdefault((result.publication_id, result.model_id, result.harness), []).append(
            result
        )
    return list(groups.values())


def our_row(entry: Entry, metric: str, found: Scope) -> Row:
    value = METRICS[metric][1]
    groups = scores.by_category(entry.results)
    shares = {
        slug: value(scores.score(groups.get(slug, []), found.sizes[slug], k=entry.score.k))
        for slug in found.titles
    }
    return Row(
        model=entry.model,
        harness=entry.harness,
        url=entry.url,
        claimed=False,
        shares={**shares, "all": value(entry.score)},
    )


def claimed_row(results: Sequence[PublishedResult], metric: str) -> Row:
    value = METRICS[metric][1]
    entries = {result.category or "all": boards.claim(result) for result in results}
    any_entry = next(iter(entries.values()))
    return Row(
        model=any_entry.model,
        harness=any_entry.harness,
        url=any_entry.url,
        claimed=True,
        shares={name: value(entry.score) for name, entry in entries.items()},
    )


def publication_context(claims: Sequence[PublishedResult]) -> dict[str, object]:
    """What stands below the table: where claims come from and under which setting."""
    if not claims:
        return {"citation": "No published results have been imported."}
    payload = claims[0].publication.payload
    setting = payload.get("setting", {})
    return {
        "citation": claims[0].publication.citation,
        "note_counts": payload.get("note_counts", ""),
        "setting": [{"name": name, "value": value} for name, value in setting.items()],
        "agentic": [{"model": name, **row} for name, row in payload.get("agentic", {}).items()],
    }


def _metric_filter(metric: str) -> Filter:
    options = tuple(Option(value=key, text=text) for key, (text, _) in METRICS.items())
    return Filter(name="metric", label="Metric", value=metric, options=options, default="pass1")


def all_titles(found: Scope, claims: Sequence[PublishedResult]) -> dict[str, str]:
    """Categories of the catalogue, then those that only a publication has problems of."""
    payload = claims[0].publication.payload if claims else {}
    return found.titles | {category_slug(title): title for title in payload.get("categories", {})}


def _counts(sizes: Mapping[str, int], names: Sequence[str]) -> SafeString:
    return cells.joined(cells.count_cell(sizes.get(name)) for name in names)


def _drawn(row: Row, names: Sequence[str]) -> dict[str, object]:
    made = cells.joined(cells.heat_cell(row.shares.get(name)) for name in names)
    return {"model": row.model, "harness": row.harness, "url": row.url, "cells": made}


def _record(row: Row, names: Sequence[str]) -> dict[str, object]:
    start = {"model": row.model, "harness": row.harness, "claimed": row.claimed}
    return start | {name: row.shares.get(name) for name in names}
