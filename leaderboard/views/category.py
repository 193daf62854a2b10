"""One category: its problems, who does best on them, how kernels fail there."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest
from django.urls import reverse

from leaderboard import boards, cells
from leaderboard.boards import Cell, Entry
from leaderboard.columns import Placed, cells_of, known_to_any, placed
from leaderboard.filters import SETTING_FILTERS, said, setting_filters
from leaderboard.models import Problem
from leaderboard.pages import Crumb, Page, Table, canonical_query, public_page
from leaderboard.taxonomy import family_of
from leaderboard.verdicts import words
from leaderboard.views.figures.board import failure_modes
from leaderboard.views.figures.frame import framed

MOST_MODELS = 12
LIST_SIZE, LIST_RANKS = "standard", "4"
SHOWN = ("fast1", "fastk", "pass1", "passk", "correct", "speedup", "utilisation")
Solver = tuple[Entry, Cell]


@public_page(*SETTING_FILTERS)
def category(request: HttpRequest, slug: str) -> Page:
    problems = list(Problem.objects.filter(category=slug).order_by("number"))
    if not problems:
        raise Http404
    scored, title = sum(problem.scored for problem in problems), problems[0].category_title
    setting, controls = setting_filters(request, boards.known_settings())
    entries = boards.judged(setting, scored, category=slug) if setting else []
    claims = boards.published(category=slug)
    rows = placed([*entries, *map(boards.claim, claims)], "fast1")
    records = [problem_record(problem, entries) for problem in problems]
    where = canonical_query(request, (*SETTING_FILTERS,))
    return Page(
        template="category.html",
        section="categories",
        context={
            "title": title,
            "family": family_of(slug),
            "page_url": reverse("category", args=[slug]),
            "filters": controls,
            "showing": setting,
            "said": said(len(problems), "problem"),
            "problems": [_problem_row(*pair) for pair in zip(problems, records, strict=True)],
            "board_url": f"{reverse('board')}?category={slug}" + (f"&{where}" if where else ""),
            "figures": _figures(slug, entries, where),
            **facts(records, scored),
            **models_context(rows),
        },
        data={
            "category": slug,
            "title": title,
            "setting": setting and vars(setting),
            "problems": records,
        },
        table=Table(columns=tuple(records[0]), rows=[list(record.values()) for record in records]),
        crumbs=(
            Crumb(text="Leaderboard", url=reverse("board")),
            Crumb(text="Categories", url=reverse("categories")),
            Crumb(text=title),
        ),
    )


def problem_record(problem: Problem, entries: Iterable[Entry]) -> dict[str, Any]:
    """What became of a problem over all submissions; the best is the fastest right kernel."""
    tried = [pair for pair in _cells_at(problem.number, entries) if not pair[0].baseline]
    solved = [pair for pair in tried if pair[1].correct]
    best = max(solved, key=lambda pair: pair[1].best_speedup or 0.0, default=None)
    known = [cell.utilisation for _, cell in solved if cell.utilisation is not None]
    cost = problem.payload.get("costs", {}).get(LIST_SIZE, {}).get(LIST_RANKS, {})
    return {
        "number": problem.number,
        "slug": problem.slug,
        "title": problem.title,
        "source": problem.payload.get("source", ""),
        "scored": problem.scored,
        "wire_bytes": cost.get("wire_bytes"),
        "tried": len(tried),
        "solved": len(solved),
        "best_speedup": best[1].best_speedup if best else None,
        "best_model": best[0].model if best else None,
        "best_run": best[1].run if best else None,
        "utilisation": statistics.median(known) if known else None,
    }


def _cells_at(number: int, entries: Iterable[Entry]) -> list[Solver]:
    return [(entry, cell) for entry in entries for cell in entry.cells if cell.problem == number]


def _problem_row(problem: Problem, record: Mapping[str, Any]) -> dict[str, object]:
    numbers = [
        cells.bytes_cell(record["wire_bytes"]),
        cells.fraction_cell(record["solved"], record["tried"]),
        cells.ratio_cell(record["best_speedup"]),
        cells.per_cent_cell(record["utilisation"]),
    ]
    return {
        **record,
        "summary": problem.summary,
        "also": problem.payload.get("also", []),
        "reason": problem.unscored_reason,
        "url": reverse("problem", args=[problem.number, problem.slug]),
        "run_url": reverse("run", args=[record["best_run"]]) if record["best_run"] else "",
        "cells": cells.joined(numbers),
    }


def facts(records: Sequence[Mapping[str, Any]], scored: int) -> dict[str, object]:
    """Medians are over the problems that somebody solved."""
    speedups = [record["best_speedup"] for record in records if record["best_speedup"]]
    known = [r["utilisation"] for r in records if r["utilisation"] is not None]
    return {
        "scored": scored,
        "unscored": len(records) - scored,
        "solved": sum(record["solved"] > 0 for record in records),
        "speedup": statistics.median(speedups) if speedups else None,
        "utilisation": statistics.median(known) if known else None,
    }


def models_context(rows: Sequence[Placed]) -> dict[str, object]:
    judged = [row for row in rows if not row.entry.claimed][:MOST_MODELS]
    shown = [*judged, *(row for row in rows if row.entry.claimed)]
    known = known_to_any([row.entry for row in shown])
    columns = [column for column in known if column.key in SHOWN]
    return {
        "columns": columns,
        "models": [
            {
                **{name: getattr(row.entry, name) for name in ("model", "harness", "url", "trust")},
                "kind": "claimed"
                if row.entry.claimed
                else "baseline"
                if row.entry.baseline
                else "",
                "place": row.place or "",
                "trust_text": words(row.entry.trust),
                "cells": cells_of(row.entry, columns),
            }
            for row in shown
        ],
    }


def _figures(slug: str, entries: Sequence[Entry], where: str) -> list[dict[str, object]]:
    if not any(entry.modes for entry in entries if not entry.baseline):
        return []
    says = "Share of kernels by outcome, of the best submissions."
    address = f"category={slug}" + (f"&{where}" if where else "")
    return [framed(failure_modes, address, title="How kernels fail here", says=says)]
