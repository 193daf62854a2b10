"""Shows submissions side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from leaderboard.delivery import cells
from leaderboard.delivery.pages import BadQuery, Crumb, Page, Table, canonical_query, public_page
from leaderboard.kit.links import category_url, url
from leaderboard.kit.visible import visible
from leaderboard.metrics.telling_apart import told_apart
from leaderboard.metrics.verdicts import words
from leaderboard.model_pages import side_by_side
from leaderboard.model_pages.compare_kernels import kernels
from leaderboard.model_pages.meeting import (
    Places,
    called,
    compare_url,
    differences,
    judged_where,
    lead_to_categories,
    meeting,
    stands,
)
from leaderboard.model_pages.side_by_side import LETTERS, Bounds, ComparedProblem, Comparison
from leaderboard.models import Problem, Run
from leaderboard.read_model import boards
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.columns import RankedRow, placed, usual_sort
from leaderboard.read_model.filters import (
    SETTING_FILTERS,
    Filter,
    Option,
    setting_filters,
    setting_tail,
)

FEWEST_SELECTS = 3
MOST_NAMED = 12
NUMBER_OR_SLUG = "the number of any public submission or the slug of any model that has one"
# Read with the board, because who is compared is only known then.
DETAILS = ("cells",)


@require_safe
def compare(request: HttpRequest, form: str = "html") -> HttpResponseBase:
    """Return the page of a comparison. Rows ticked on a board come as `with`, two fields of a form
    as `kernels`; both are redirected to an address that says which is which."""
    ticked = [value for value in request.GET.getlist("with") if value][: len(LETTERS)]
    if ticked:
        where = [(name, request.GET[name]) for name in SETTING_FILTERS if request.GET.get(name)]
        query = urlencode([*zip(LETTERS, ticked, strict=False), *where])
        return redirect(f"{url('compare')}?{query}")
    digests = [value.strip() for value in request.GET.getlist("kernels")]
    if len(digests) > 1:
        query = urlencode({"kernels": ",".join(digests)}, safe=",")
        return redirect(f"{url('compare')}?{query}")
    if any(digests):
        return kernels(request, form=form)
    return submissions(request, form=form)


@public_page(*LETTERS, *SETTING_FILTERS)
def submissions(request: HttpRequest) -> Page:
    settings = boards.known_settings()
    setting, controls = setting_filters(request, settings)
    problems, titles = scored_problems(setting)
    ahead = DETAILS if asked_for(request) else ()
    entries = boards.judged(setting, len(problems), ahead=ahead) if setting else []
    rows = placed(entries, usual_sort(setting))
    sides, absent, places = chosen(request, rows)
    where = canonical_query(request, (*SETTING_FILTERS,))
    tail = setting_tail(setting, settings)
    found = side_by_side.lines(problems, sides, bounds_of(sides)) if shown(sides, absent) else []
    context = {
        "page_url": url("compare"),
        "filters": [*pickers(sides, absent, rows), *controls],
        "setting": setting,
        "tail": tail,
        "absent": absent,
        **parted(places, settings, setting, absent, sides),
        "is_alone": len(sides) == 1 and len(asked_for(request)) > 1,
        "is_only": len(rows) == 1,
        "sides": _sides(sides, rows, tail),
        **(compared(found, sides, titles, where) if found else {"scores": []}),
    }
    records = (record(line) for line in found)
    columns = tuple(record(found[0])) if found else ("number", "problem")
    return Page(
        template="compare.html",
        section="compare",
        context=context,
        data=lambda: {
            "setting": setting and vars(setting),
            "submissions": [side.entry.submission for side in sides],
            "absent": absent,
            "apart": context["apart"],
            "overlap": vars(side_by_side.overlap(found, len(sides))) if found else None,
            "problems": list(records),
        },
        table=Table(columns=columns, rows=(list(one.values()) for one in records)),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text="Compare")),
    )


def scored_problems(setting: Setting | None) -> tuple[list[ComparedProblem], dict[str, str]]:
    """Return the problems scored in the setting, in the order of the catalogue, and the titles of
    their categories."""
    fields = ("number", "slug", "title", "category", "category_title")
    rows = Problem.objects.scored(setting.world_size if setting else None).values_list(*fields)
    problems = [
        ComparedProblem(number=number, title=title, url=url("problem", number, slug), category=own)
        for number, slug, title, own, _ in rows
    ]
    return problems, {own: title for *_, own, title in rows}


def shown(sides: Sequence[RankedRow], absent: Sequence[str]) -> bool:
    """Return whether to show a comparison; half of it would be read as the whole."""
    return len(sides) > 1 and not absent


def asked_for(request: HttpRequest) -> list[str]:
    return [value for value in map(request.GET.get, LETTERS) if value]


def chosen(
    request: HttpRequest, rows: Sequence[RankedRow]
) -> tuple[list[RankedRow], list[str], Places]:
    """Return the sides asked for: a submission by its number, or a model's best by the model's
    slug, none twice. Beside them those that are on a board, but not in this setting; if any are,
    also where all were judged."""
    sides: list[RankedRow] = []
    missing: dict[str, str] = {}
    for name in LETTERS:
        value = request.GET.get(name, "")
        names = (row for row in rows if value in (str(row.entry.submission), row.entry.slug))
        side = next(names, None) if value else None
        if value and side is None:
            missing.setdefault(value, name)
        if side is not None and side not in sides:
            sides.append(side)
    places = judged_where(asked_for(request)) if missing else {}
    for value, name in missing.items():
        if value not in places:
            where = canonical_query(request, (*SETTING_FILTERS,))
            lead_to_categories(asked_for(request), [side.entry.slug for side in sides], where)
            known = [str(row.entry.submission) for row in rows][:MOST_NAMED]
            such = f", such as {', '.join(known)}" if known else ""
            raise BadQuery(name, value, (NUMBER_OR_SLUG + such,))
    return sides, list(missing), places


def parted(
    places: Places,
    settings: Sequence[Setting],
    setting: Setting | None,
    absent: Sequence[str],
    sides: Sequence[RankedRow],
) -> dict[str, object]:
    """Return why some of those asked for are not set side by side here, and which can be
    compared."""
    met = meeting(places, settings, setting)
    apart = differences(places)
    numbers = [side.entry.submission for side in sides]
    return {
        "meeting": met,
        "apart": apart,
        "absent_names": [called(one) for one in absent],
        "others_url": compare_url(numbers, setting) if setting and len(sides) > 1 else "",
        "stands": [] if met else stands(places, list(places) if apart else absent),
    }


def pickers(
    sides: Sequence[RankedRow], absent: Sequence[str], rows: Sequence[RankedRow]
) -> list[Filter]:
    options = tuple(
        Option(
            value=str(row.entry.submission),
            text=f"{visible(row.entry.model)}, {how}, no. {row.entry.submission}",
        )
        for row, how in zip(rows, told_apart([row.entry for row in rows]), strict=True)
    )
    others = tuple(Option(value=one, text=f"{called(one)}, not judged here") for one in absent)
    values = [*(str(side.entry.submission) for side in sides), *absent]
    count = min(max(FEWEST_SELECTS, len(values) + 1), len(LETTERS))
    values += [""] * count
    return [
        Filter(
            name=letter,
            label=f"Submission {letter.upper()}",
            value=value,
            options=(Option(value="", text="–"), *others, *options),
        )
        for letter, value in zip(LETTERS[:count], values, strict=False)
    ]


def bounds_of(sides: Sequence[RankedRow]) -> Bounds:
    runs = Run.objects.filter(pk__in=side_by_side.solving_runs(sides)).order_by()
    rows = runs.values_list("pk", "speedup_low", "speedup_high")
    return {str(pk): (low, high) for pk, low, high in rows}


def compared(
    found: Sequence[Comparison], sides: Sequence[RankedRow], titles: Mapping[str, str], where: str
) -> dict[str, object]:
    overlap = side_by_side.overlap(found, len(sides))
    first, *others = list(LETTERS[: len(sides)].upper())
    return {
        "overlap": overlap,
        "both": "both" if len(sides) == 2 else f"all {len(sides)}",
        "neither": "neither" if len(sides) == 2 else "none",
        "ratio_names": [f"{first} / {other}" for other in others],
        "scores": score_rows(found, sides),
        "categories": category_rows(found, sides, titles, where),
        "lines": found,
    }


def score_rows(found: Sequence[Comparison], sides: Sequence[RankedRow]) -> list[dict[str, object]]:
    marks = [side.entry.score for side in sides]
    overlap = side_by_side.overlap(found, len(sides))
    common = side_by_side.speedups_in_common(found, len(sides))
    both = "both" if len(sides) == 2 else "all"
    rows: list[tuple[str, str, list[SafeString]]] = [
        ("pass@1", "%", [cells.share_cell(m.pass_at_1, m.pass_at_1_interval) for m in marks]),
        ("fast₁@1", "%", [cells.share_cell(m.fast_at_1) for m in marks]),
        ("Solved", "problems", [cells.fraction_cell(m.correct, m.scored) for m in marks]),
        ("Solved by no other", "problems", [cells.count_cell(n) for n in overlap.only]),
        (f"Speedup where {both} are correct", "geo. mean", [cells.ratio_cell(x) for x in common]),
        (
            "Speedup of all it solved",
            "geo. mean",
            [cells.ratio_cell(m.geometric_mean) for m in marks],
        ),
        (
            "Speedup of all it solved",
            "median",
            [cells.ratio_cell(side.entry.numbers.get("median_speedup")) for side in sides],
        ),
    ]
    if not marks[0].is_timed:
        rows = [row for row in rows if row[0] in ("pass@1", "Solved", "Solved by no other")]
    return [{"name": name, "unit": unit, "cells": cells.joined(row)} for name, unit, row in rows]


def category_rows(
    found: Sequence[Comparison], sides: Sequence[RankedRow], titles: Mapping[str, str], where: str
) -> list[dict[str, object]]:
    """Return a row of counts and speedups for each category; `where` is the setting as the address
    names it."""
    rows: list[dict[str, object]] = []
    for slug, group in side_by_side.by_category(found).items():
        solved = [sum(line.solved[n] for line in group) for n in range(len(sides))]
        common = side_by_side.speedups_in_common(group, len(sides))
        made = [
            cells.count_cell(len(group)),
            *(cells.count_cell(n) for n in solved),
            cells.count_cell(side_by_side.overlap(group, len(sides)).every),
            *(cells.ratio_cell(x) for x in common),
        ]
        address = category_url(slug, where)
        rows.append({"title": titles[slug], "url": address, "cells": cells.joined(made)})
    return rows


def record(line: Comparison) -> dict[str, object]:
    """Return a row of the twins; keys begin with the letter of a submission."""
    made: dict[str, object] = {"number": line.problem.number, "problem": line.problem.title}
    for letter, outcome in zip(LETTERS, line.outcomes, strict=False):
        for name in ("verdict", "speedup", "low", "high", "run"):
            made[f"{letter}_{name}"] = getattr(outcome, name) if outcome else None
    for letter, ratio in zip(LETTERS[1:], line.ratios, strict=False):
        made[f"a_over_{letter}"] = ratio.value if ratio else None
        made[f"a_and_{letter}_apart"] = ratio.is_apart if ratio else None
    return made


def _sides(
    sides: Sequence[RankedRow], rows: Sequence[RankedRow], tail: str
) -> list[dict[str, object]]:
    """Describe the submissions compared, each by what differs from others of its model."""
    every = [row.entry for row in rows]
    apart = zip(every, told_apart(every), strict=True)
    how = {entry.submission: words for entry, words in apart}
    return [
        {
            **{name: getattr(side.entry, name) for name in ("model", "submission")},
            "how": how[side.entry.submission],
            "url": side.entry.url_with(tail),
            "letter": letter.upper(),
            "place": side.stands,
            "trust": words(side.entry.trust),
        }
        for letter, side in zip(LETTERS, sides, strict=False)
    ]
