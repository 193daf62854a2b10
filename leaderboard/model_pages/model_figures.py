"""Draws the figures of one language model: speedups by problem, and how its attempts end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from django.http import Http404, HttpRequest

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Table
from leaderboard.figures.charts import boards as board_charts
from leaderboard.figures.charts import curves as curve_charts
from leaderboard.figures.charts import submissions as charts
from leaderboard.figures.charts.boards import ByCategory, ModeCounts
from leaderboard.figures.charts.curves import Curve
from leaderboard.figures.charts.drawing import Spec
from leaderboard.figures.charts.submissions import Series
from leaderboard.figures.claimed_figures import READ_OFF
from leaderboard.figures.claimed_figures import curves as claimed_curves
from leaderboard.figures.figure_rows import endings_in_words, fast_p_curves
from leaderboard.figures.findings import endings_found, fast_found, most_found, spread_found
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, figure, framed
from leaderboard.figures.tables import category_table, curve_table, mode_table
from leaderboard.kit.links import url
from leaderboard.metrics.telling_apart import told_apart
from leaderboard.models import LanguageModel, LeaderboardRow, Problem
from leaderboard.read_model import boards
from leaderboard.read_model.boards import BoardRow, Shown
from leaderboard.read_model.published_claims import Claim, entry_of, every_claim

Titles = Mapping[int, str]


class Categories(NamedTuple):
    """Holds the title of each category, and `ranked_from` of each of its scored problems."""

    titles: Mapping[str, str]
    least: Mapping[str, Sequence[int]]


EACH = ", each in one setting, as the table of the model says."


def asked(request: HttpRequest) -> tuple[LanguageModel, list[BoardRow], Titles]:
    """Return the model of `?model=<slug>` with its ranked submissions, best first, and the titles
    of problems. Raises Http404 for an unknown model."""
    found, each, titles = shown_of(request)
    return found, [one.entry for one in each], titles


def shown_of(request: HttpRequest) -> tuple[LanguageModel, list[Shown], Titles]:
    """Return the same, with the setting in which each submission is shown."""
    slug = request.GET.get("model", "")
    found = LanguageModel.objects.visible().called(slug) if slug.isprintable() else None
    if found is None:
        raise Http404
    problems = list(Problem.objects.values_list("number", "title", "scored", "ranked_from"))
    judged = LeaderboardRow.objects.ranked().filter(submission__model=found)
    ranked_from = [least for _, _, is_scored, least in problems if is_scored]
    found_rows = boards.in_every_setting(judged)
    each = boards.each_in_its_setting(found_rows, ranked_from)
    return found, each, {number: f"{number}. {title}" for number, title, *_ in problems}


def categories() -> Categories:
    """Return those of all scored problems; one query."""
    titles: dict[str, str] = {}
    least: dict[str, list[int]] = {}
    told = Problem.objects.scored().values_list("category", "category_title", "ranked_from")
    for slug, title, ranked_from in told:
        titles[slug] = title
        least.setdefault(slug, []).append(ranked_from)
    return Categories(titles, least)


@figure(
    "model-failures",
    "How attempts end",
    f"Share of attempts by outcome, by submission{EACH}",
    "model",
)
def failures(request: HttpRequest) -> Drawn:
    found, entries, _ = asked(request)
    counts = mode_counts(entries)
    drawn = _drawn(found, board_charts.failure_modes(counts), mode_table(counts))
    return replace(drawn, title=modes_found(counts))


def modes_found(counts: Sequence[ModeCounts]) -> str:
    return endings_found(failures.title, (one.counts for one in counts))


@figure(
    "model-speedups",
    "Speedup on every problem solved",
    f"The best kernel of each submission{EACH}",
    "model",
    tall=True,
)
def speedups(request: HttpRequest) -> Drawn:
    found, entries, titles = asked(request)
    series = series_of(entries, titles)
    drawn = _drawn(found, charts.speedups_by_problem(series), series_table(series))
    return replace(drawn, title=speedups_title(entries))


@figure(
    "model-categories",
    "What it is good at",
    f"Share of each category's problems solved by a first attempt{EACH}",
    "model",
    tall=True,
)
def by_category(request: HttpRequest) -> Drawn:
    found, each, _ = shown_of(request)
    titles, rows = shares_by_category(each, every_claim(model=found.pk), categories())
    drawn = _drawn(found, charts.by_category(rows, titles), category_table(rows, titles))
    return replace(drawn, title=category_title(rows, titles))


@figure(
    "model-curve",
    "How many kernels are how fast",
    "Share of all problems solved correctly and more than p times as fast." + READ_OFF,
    "model",
)
def fast_p(request: HttpRequest) -> Drawn:
    found, entries, _ = asked(request)
    totals = [claim for claim in every_claim(model=found.pk) if claim.category is None]
    curves = curves_of(entries, totals)
    drawn = _drawn(found, curve_charts.fast_p_curves(curves), curve_table(curves))
    return replace(drawn, title=fast_found(fast_p.title, entries, totals, 1.0))


def curves_of(entries: Sequence[BoardRow], totals: Sequence[Claim]) -> list[Curve]:
    scored = max((entry.score.scored for entry in entries), default=0)
    return fast_p_curves(entries, totals, scored)


def shares_by_category(
    each: Sequence[Shown], claims: Sequence[Claim], known: Categories
) -> tuple[list[str], list[ByCategory]]:
    """Return the titles of categories, and pass@1 in each of submissions, of the problems scored in
    their setting, and of published claims, of the problems that their authors count."""
    titles = known.titles
    names = named([one.entry for one in each])
    told = {(one.harness, one.category): one for one in claims if one.category is not None}
    rows = [
        ByCategory(
            model=one.entry.model,
            name=names[one.entry.submission],
            values=tuple(
                _share(one.entry, slug, sum(n <= one.setting.world_size for n in known.least[slug]))
                for slug in titles
            ),
        )
        for one in each
    ]
    for harness in dict.fromkeys(harness for harness, _ in told):
        own = [told.get((harness, slug)) for slug in titles]
        shares = tuple(one and entry_of(one).score.pass_at_1 for one in own)
        rows.append(ByCategory(model=harness, name=f"{harness}, published", values=shares))
    return list(titles.values()), rows


def _share(entry: BoardRow, category: str, size: int) -> float | None:
    """Return pass@1; None where nothing was tried."""
    score = entry.score_in(category, size)
    return score.pass_at_1 if score.attempted else None


def speedups_title(entries: Sequence[BoardRow]) -> str:
    """Return the title with the spread of the submission that solved most problems."""
    every = [[c.best_speedup for c in one.cells if c.best_speedup is not None] for one in entries]
    most = max(every, key=len, default=[])
    title = speedups.title + (", most kernels" if len(every) > 1 else "")
    return spread_found(title, most)


def category_title(rows: Sequence[ByCategory], titles: Sequence[str]) -> str:
    """Return the title with the category of the highest share."""
    best = [
        (title, max((row.values[at] or 0.0 for row in rows), default=None))
        for at, title in enumerate(titles)
    ]
    return most_found(by_category.title, best, cells.share_text, "most")


def _drawn(found: LanguageModel, spec: Spec, table: Table) -> Drawn:
    board = Crumb(text="Leaderboard", url=url("board"))
    model = Crumb(text=found.name, url=url("model", found.slug))
    return Drawn(spec=spec, table=table, crumbs=(board, model))


def model_figures(
    found: LanguageModel, each: Sequence[Shown], claims: Sequence[Claim], known: Categories
) -> dict[str, object]:
    """Return the frames of figures, and what too few submissions for one are told by."""
    entries = [one.entry for one in each]
    shown = [by_category] if entries or claims else []
    totals = [claim for claim in claims if claim.category is None]
    timed = [entry for entry in entries if entry.score.is_timed and entry.score.correct]
    is_timed = bool(timed)
    is_drawn = any(not entry.baseline for entry in timed)
    shown += [fast_p] if is_drawn or claimed_curves(totals) else []
    shown += [failures] if len(mode_counts(entries)) >= LEAST_DRAWN else []
    shown += [speedups] if is_timed else []
    titles = {
        failures.name: modes_found(mode_counts(entries)),
        by_category.name: category_title(*shares_by_category(each, claims, known)[::-1]),
        fast_p.name: fast_found(fast_p.title, entries, totals, 1.0),
        speedups.name: speedups_title(entries),
    }
    frames = [framed(one, f"model={found.slug}", title=titles.get(one.name, "")) for one in shown]
    return {"figures": frames, "few_told": endings_told(entries)}


def endings_told(entries: Sequence[BoardRow]) -> list[str]:
    """Return a sentence on how the attempts of each submission end, where these are too few for a
    figure."""
    counts = mode_counts(entries)
    if len(counts) >= LEAST_DRAWN:
        return []
    return [f"How attempts end, {one.name}: {endings_in_words(one.counts)}." for one in counts]


def named(entries: Sequence[BoardRow]) -> dict[int | None, str]:
    """Return what each submission of a model is called on its page, by its number: what differs,
    and the number."""
    apart = zip(entries, told_apart(entries), strict=True)
    return {entry.submission: f"{how}, no. {entry.submission}" for entry, how in apart}


def mode_counts(entries: Sequence[BoardRow]) -> list[ModeCounts]:
    names = named(entries)
    return [
        ModeCounts(name=names[entry.submission], counts=entry.modes)
        for entry in entries
        if entry.modes
    ]


def series_of(entries: Sequence[BoardRow], titles: Titles) -> list[Series]:
    found, names = [], named(entries)
    for entry in entries:
        timed = [cell for cell in entry.cells if cell.best_speedup is not None]
        points = tuple((titles[cell.problem], cell.best_speedup or 0.0) for cell in timed)
        links = tuple(url("run", cell.run) for cell in timed)
        if points:
            found.append(Series(name=names[entry.submission], points=points, links=links))
    return found


def series_table(series: Sequence[Series]) -> Table:
    """Return a row for each problem, a column for each submission."""
    by_name = [dict(one.points) for one in series]
    names = dict.fromkeys(name for one in series for name, _ in one.points)
    columns = ("Problem, ×", *(one.name for one in series))
    return Table(columns=columns, rows=[[n, *(of.get(n) for of in by_name)] for n in names])
