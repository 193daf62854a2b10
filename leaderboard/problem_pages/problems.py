"""Shows the list of problems."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Page, Table, canonical_query, choice, public_page
from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.kit.links import url
from leaderboard.metrics import scores
from leaderboard.metrics.difficulty import Difficulty
from leaderboard.models import Problem
from leaderboard.problem_pages.overview_figures import few_timed, overview_figures
from leaderboard.read_model.filters import count_phrase, setting_query
from leaderboard.read_model.problem_list import (
    LIST_FILTERS,
    Listed,
    ProblemTotals,
    listed,
    source_of,
)

# Column of a record, what heads it, its unit.
HEADINGS = {
    "number": ("No.", ""),
    "wire_bytes": ("Wire", "least of {ranks} ranks"),
    "solved": ("Solved", "submissions"),
    "difficulty": ("Difficulty", "models that solved it"),
    "baseline_us": ("Reference", "a call, % of the bound"),
    "headroom": ("Headroom", "× at most"),
    "best_speedup": ("Best speedup", "×"),
    "utilisation": ("Utilisation", "% of the bound"),
}
SORTS = (*HEADINGS, *(f"-{key}" for key in HEADINGS))
NOBODY = ProblemTotals()
MOST_HEADROOM = 100
# What a record has besides.
MORE = ("baseline_us", "reference_utilisation", "headroom")
# By the column that orders it: the hardest come first.
FROM_LEAST = {"number": "number", "difficulty": "solve_rate"}


@public_page("sort", *LIST_FILTERS)
def problems(request: HttpRequest) -> Page:
    found = listed(request)
    sort = choice(request, "sort", SORTS, "number")
    records = in_order([list_record(problem, found) for problem in found.shown], sort)
    by_number = {problem.number: problem for problem in found.shown}
    rows = [list_row(by_number[record["number"]], record) for record in records]
    query = canonical_query(request, LIST_FILTERS)
    scored = sum(problem.scored for problem in found.every)
    context = {
        "scored": scored,
        "unscored": len(found.every) - scored,
        "setting": found.setting,
        "filters": found.controls,
        "page_url": url("problems"),
        "sort": "" if sort == "number" else sort,
        "headings": [heading(key, sort, query, found.ranks) for key in HEADINGS],
        "groups": grouped(rows, sort),
        "said": count_phrase(len(rows), "problem"),
        "figures": overview_figures(found, query),
        "few_timed": few_timed(found),
        "timed": found.timed,
        "timed_url": f"{url('problems')}?{setting_query(found.timed)}" if found.timed else "",
    }
    setting = found.setting and vars(found.setting)
    return Page(
        template="problems.html",
        section="problems",
        context=context,
        data={"setting": setting, "problems": records},
        table=Table(
            columns=tuple(records[0]) if records else (),
            rows=[list(record.values()) for record in records],
        ),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text="Problems")),
    )


def list_record(problem: Problem, found: Listed) -> JsonDict:
    stood = found.stood.get(problem.number, NOBODY)
    return {
        "number": problem.number,
        "slug": problem.slug,
        "title": problem.title,
        "category": problem.category_title,
        "category_slug": problem.category,
        "source": source_of(problem),
        "scored": problem.scored,
        "wire_bytes": found.cost(problem).get("wire_bytes"),
        "solved": stood.solved,
        "submissions": stood.submissions,
        **_difficulty_record(problem, found),
        **{name: getattr(stood, name) for name in MORE},
        "best_speedup": stood.best_speedup,
        "utilisation": stood.utilisation,
    }


def _difficulty_record(problem: Problem, found: Listed) -> JsonDict:
    own = found.difficulties[problem.number] if problem.scored else Difficulty()
    return {
        "models_tried": own.models_tried,
        "models_solved": own.models_solved,
        "solve_rate": own.solve_rate,
        "difficulty": own.difficulty,
    }


def in_order(records: Sequence[JsonDict], sort: str) -> list[JsonDict]:
    """Return the records by number from the first on, by difficulty from the hardest, or by another
    key from the greatest on; `-` turns that round."""
    key = sort.removeprefix("-")
    descending = (key not in FROM_LEAST) != sort.startswith("-")
    column = FROM_LEAST.get(key, key)
    return scores.in_order(records, lambda row: row[column], descending=descending)


def list_row(problem: Problem, record: JsonObject) -> dict[str, object]:
    made = [
        cells.bytes_cell(record["wire_bytes"]),
        cells.fraction_cell(record["solved"], record["submissions"] or None),
        cells.any_cell(_difficulty(record)),
        cells.reached_cell(record["baseline_us"], _bound_us(record)),
        _headroom_cell(record["headroom"]),
        cells.ratio_cell(record["best_speedup"]),
        cells.share_cell(record["utilisation"]),
    ]
    shown: dict[str, object] = {
        "summary": problem.summary,
        "url": problem.get_absolute_url(),
        "cells": cells.joined(made),
    }
    return {**record, **shown}


def _headroom_cell(headroom: float | None) -> SafeString:
    """Return the ratio; beyond MOST_HEADROOM a bound says next to nothing, as starting a kernel
    takes longer."""
    if headroom is not None and headroom > MOST_HEADROOM:
        return format_html('<td class="num">&gt; {}×</td>', MOST_HEADROOM)
    return cells.ratio_cell(headroom)


def _difficulty(record: JsonObject) -> str | None:
    """Return `hard, 1/3`."""
    if not record["difficulty"]:
        return None
    return f"{record['difficulty']}, {record['models_solved']}/{record['models_tried']}"


def _bound_us(record: JsonObject) -> float | None:
    us, share = record["baseline_us"], record["reference_utilisation"]
    return us * share if us and share else None


def grouped(rows: Sequence[dict[str, object]], sort: str) -> list[dict[str, object]]:
    """Return the rows by category if sorted by number, else all together."""
    groups: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        groups.setdefault(str(row["category_slug"]) if sort == "number" else "", []).append(row)
    return [
        {
            "title": found[0]["category"] if slug else "",
            "url": url("category", slug) if slug else "",
            "problems": found,
        }
        for slug, found in groups.items()
    ]


def heading(key: str, sort: str, query: str, ranks: int) -> dict[str, str]:
    """Return a header that sorts by its column, in the other order where it is sorted by that
    already."""
    label, unit = HEADINGS[key]
    turned = f"-{key}" if sort == key else key
    parts = [part for part in (query, "" if turned == "number" else f"sort={turned}") if part]
    is_up = (key in FROM_LEAST) != sort.startswith("-")
    return {
        "key": key,
        "label": label,
        "unit": unit.format(ranks=ranks),
        "url": url("problems") + ("?" + "&".join(parts) if parts else ""),
        "sorted": ("ascending" if is_up else "descending") if sort.removeprefix("-") == key else "",
    }
