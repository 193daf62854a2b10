"""Shows one category: its problems, who does best on them, how kernels fail there."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import orjson
from django.db.models.fields.json import KT
from django.http import Http404, HttpRequest

from leaderboard.board_pages.board_figures import failure_modes
from leaderboard.board_pages.taxonomy import family_of
from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Page, Table, canonical_query, public_page
from leaderboard.figures.figure_rows import MOST_BARS, first
from leaderboard.figures.findings import endings_found
from leaderboard.figures.frame import framed
from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.kit.links import url
from leaderboard.metrics.telling_apart import told_apart
from leaderboard.metrics.verdicts import words
from leaderboard.models import Problem
from leaderboard.read_model import boards
from leaderboard.read_model.boards import BoardRow, Setting
from leaderboard.read_model.columns import RankedRow, cells_of, known_to_any, placed, usual_sort
from leaderboard.read_model.filters import (
    SETTING_FILTERS,
    count_phrase,
    setting_filters,
    setting_tail,
)
from leaderboard.read_model.problem_aggregates import beside, place_of
from leaderboard.read_model.problem_list import LIST_RANKS, LIST_SIZE
from leaderboard.read_model.published_claims import entry_of, published
from leaderboard.read_model.setting import tells_times

MOST_MODELS = 12


@public_page(*SETTING_FILTERS)
def category(request: HttpRequest, slug: str) -> Page:
    known = boards.known_settings()
    setting, controls = setting_filters(request, known)
    problems = problems_of(slug, setting)
    if not problems:
        raise Http404
    scored, title = sum(problem.scored for problem in problems), problems[0].category_title
    entries = boards.judged(setting, scored, category=slug) if setting else []
    rows = placed([*entries, *map(entry_of, published(category=slug))], usual_sort(setting))
    records = [problem_record(problem, setting) for problem in problems]
    where = canonical_query(request, (*SETTING_FILTERS,))
    return Page(
        template="category.html",
        section="categories",
        context={
            "title": title,
            "family": family_of(slug),
            "page_url": url("category", slug),
            "filters": controls,
            **_where(setting),
            "said": count_phrase(len(problems), "problem"),
            "problems": [_problem_row(*pair) for pair in zip(problems, records, strict=True)],
            "board_url": f"{url('board')}?category={slug}" + (f"&{where}" if where else ""),
            "figures": _figures(slug, entries, where),
            **facts(records, scored),
            **models_context(rows, setting_tail(setting, known)),
        },
        data={
            "category": slug,
            "title": title,
            "setting": setting and vars(setting),
            "problems": records,
        },
        table=Table(columns=tuple(records[0]), rows=[list(record.values()) for record in records]),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text="Categories", url=url("categories")),
            Crumb(text=title),
        ),
    )


def _where(setting: Setting | None) -> dict[str, object]:
    return {
        "showing": setting,
        "ranks": setting.world_size if setting else LIST_RANKS,
        "is_timed": tells_times(setting),
    }


class CategoryProblem(NamedTuple):
    """Holds a problem with its results in the setting."""

    number: int
    slug: str
    title: str
    category_title: str
    summary: str
    scored: bool
    unscored_reason: str | None
    ranked_from: int
    ranked_from_reason: str | None
    source: str | None
    costs: str | None
    also: str | None
    here__submissions: int | None
    here__solved: int | None
    here__best_speedup: float | None
    here__run__kernel__submission__model__name: str | None
    here__run_id: UUID | None
    here__usual_utilisation: float | None


def problems_of(slug: str, setting: Setting | None) -> list[CategoryProblem]:
    """Return the problems of a category; what is not ranked in the setting is not scored there."""
    found = beside(Problem.objects.filter(category=slug), place_of(setting))
    listed = found.annotate(also=KT("payload__also")).order_by("number")
    rows = map(CategoryProblem._make, listed.values_list(*CategoryProblem._fields))
    ranks = setting.world_size if setting else LIST_RANKS
    return [row._replace(scored=row.scored and row.ranked_from <= ranks) for row in rows]


def problem_record(problem: CategoryProblem, setting: Setting | None) -> JsonDict:
    """Return the results at a problem over all submissions; the best is the fastest correct kernel,
    which there is none of where nothing was timed. `wire_bytes` are bytes, `utilisation` is a share
    of the bound."""
    size, ranks = (setting.size, setting.world_size) if setting else (LIST_SIZE, LIST_RANKS)
    costs = orjson.loads(problem.costs or "{}").get(size, {}).get(str(ranks), {})
    tried, solved = (
        (problem.here__submissions or 0, problem.here__solved or 0) if problem.scored else (0, 0)
    )
    best = problem.here__best_speedup if solved else None
    return {
        "number": problem.number,
        "slug": problem.slug,
        "title": problem.title,
        "source": problem.source or "",
        "scored": problem.scored,
        "wire_bytes": costs.get("wire_bytes"),
        "tried": tried,
        "solved": solved,
        "best_speedup": best,
        "best_model": problem.here__run__kernel__submission__model__name if best else None,
        "best_run": str(problem.here__run_id) if best else None,
        "utilisation": problem.here__usual_utilisation if solved else None,
    }


def _problem_row(problem: CategoryProblem, record: JsonObject) -> dict[str, object]:
    numbers = [
        cells.bytes_cell(record["wire_bytes"]),
        cells.fraction_cell(record["solved"], record["tried"] or None),
    ]
    times = [cells.ratio_cell(record["best_speedup"]), cells.per_cent_cell(record["utilisation"])]
    return {
        **record,
        "summary": problem.summary,
        "also": orjson.loads(problem.also or "[]"),
        "reason": problem.unscored_reason or problem.ranked_from_reason,
        "url": url("problem", problem.number, problem.slug),
        "run_url": url("run", record["best_run"]) if record["best_run"] else "",
        "cells": cells.joined(numbers),
        "times": cells.joined(times),
    }


def facts(records: Sequence[JsonObject], scored: int) -> dict[str, object]:
    """Return how many problems are scored and solved, with medians over those that somebody
    solved."""
    speedups = [record["best_speedup"] for record in records if record["best_speedup"]]
    known = [r["utilisation"] for r in records if r["utilisation"] is not None]
    return {
        "scored": scored,
        "unscored": len(records) - scored,
        "solved": sum(record["solved"] > 0 for record in records),
        "speedup": statistics.median(speedups) if speedups else None,
        "utilisation": statistics.median(known) if known else None,
    }


def models_context(rows: Sequence[RankedRow], tail: str) -> dict[str, object]:
    """Return the best models and all claims as rows; `tail` ends addresses of submissions."""
    judged = [row for row in rows if not row.entry.claimed][:MOST_MODELS]
    shown = [*judged, *(row for row in rows if row.entry.claimed)]
    known = known_to_any([row.entry for row in shown])
    columns = [column for column in known if column.in_category]
    apart = told_apart([row.entry for row in judged]) + [
        row.entry.harness for row in shown[len(judged) :]
    ]
    return {
        "columns": columns,
        "models": [
            {
                **{name: getattr(row.entry, name) for name in ("model", "trust")},
                "how": how,
                "url": row.entry.url_with(tail),
                "kind": "claimed"
                if row.entry.claimed
                else "baseline"
                if row.entry.baseline
                else "",
                "place": row.stands,
                "trust_text": words(row.entry.trust),
                "cells": cells_of(row.entry, columns),
            }
            for row, how in zip(shown, apart, strict=True)
        ],
    }


def _figures(slug: str, entries: Sequence[BoardRow], where: str) -> list[dict[str, object]]:
    models = first(entries, MOST_BARS)
    if not any(entry.modes for entry in models):
        return []
    title = endings_found("How kernels fail here", (entry.modes for entry in models))
    says = "Share of kernels by outcome, of the best submissions."
    address = f"category={slug}" + (f"&{where}" if where else "")
    return [framed(failure_modes, address, title=title, says=says)]
