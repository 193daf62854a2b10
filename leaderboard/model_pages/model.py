"""Shows a language model: all its submissions, and where they are strong and weak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from leaderboard.delivery import cells, citing
from leaderboard.delivery.pages import Crumb, Page, Table, public_page
from leaderboard.delivery.redirects import moved_to
from leaderboard.kit.links import url
from leaderboard.kit.unindexed import unindexed
from leaderboard.metrics import scores
from leaderboard.metrics.telling_apart import told_apart
from leaderboard.metrics.verdicts import state, verdict_words
from leaderboard.model_pages.chosen import counted_record, counted_submissions
from leaderboard.model_pages.model_figures import Categories, model_figures, named
from leaderboard.model_pages.side_by_side import LETTERS
from leaderboard.models import (
    Kernel,
    LanguageModel,
    LeaderboardRow,
    Moderation,
    Problem,
    Submission,
    Visibility,
)
from leaderboard.read_model import boards
from leaderboard.read_model.board_records import CSV_COLUMNS, as_record, csv_rows
from leaderboard.read_model.boards import BoardRow, Cell, Shown
from leaderboard.read_model.columns import RankedRow, known_to_any, placed, row_context, usual_sort
from leaderboard.read_model.filters import row_url, setting_query
from leaderboard.read_model.published_claims import Claim, entry_of, every_claim
from leaderboard.read_model.setting import tells_times

# So many problems are named as the best and as the worst.
MOST_NAMED = 8
# By the number of the submission.
Settings = Mapping[int | None, boards.Setting]


@dataclass(frozen=True, kw_only=True)
class Known:
    """Holds the catalogue, as much of it as the page shows; `least` is `ranked_from` of each scored
    problem, by category."""

    problems: Mapping[int, tuple[str, str]]
    titles: Mapping[str, str]
    least: Mapping[str, Sequence[int]]

    @property
    def ranked_from(self) -> list[int]:
        return [ranks for own in self.least.values() for ranks in own]

    def size(self, category: str, setting: boards.Setting | None) -> int:
        """Count the problems of a category that are scored in a setting; all without one."""
        own = self.least[category]
        return len(own) if setting is None else sum(n <= setting.world_size for n in own)


@public_page()
def model(request: HttpRequest, slug: str) -> Page:
    found, handed_in = model_called(slug)
    known = catalogue()
    judged = LeaderboardRow.objects.ranked().filter(submission__model=found)
    stored = boards.in_every_setting(judged)
    each = boards.each_in_its_setting(stored, known.ranked_from)
    entries = [one.entry for one in each]
    settings = {one.entry.submission: one.setting for one in each}
    timed = boards.timed_too(stored, each, known.ranked_from)
    claims = every_claim(model=found.pk)
    totals = [entry_of(claim) for claim in claims if claim.category is None]
    rows = placed([*entries, *totals], "fast1")
    ours = [row.entry for row in rows if not row.entry.claimed]
    context = {
        "model": found,
        **table_context(rows, settings, timed),
        **best_of(ours, totals, settings),
        **{"claimed": bool(totals), "citation": claims[0].citation if totals else ""},
        **{"compare_url": compare_url(each), "matrix_url": matrix_url(ours, settings)},
        "badge_url": url("model-badge", found.slug) if ours else "",
        **extremes(each, settings, known),
        **category_context(each, claims, known),
        **{"handed_in": handed_in, "history": history(entries, settings)},
        **model_figures(found, each, claims, Categories(known.titles, known.least)),
        "cite": citing.of_page(request, url("model", found.slug)),
    }
    return Page(
        template="model.html",
        section="",
        context=context,
        data=lambda: {
            **counted_record(found, handed_in),
            "rows": [as_record(row) for row in rows],
            "timed": list(map(timed_record, timed.values())),
            "settings": [{"submission": n, **vars(setting)} for n, setting in settings.items()],
            "problems": [record for entry in ours for record in cell_records(entry)],
        },
        table=Table(columns=CSV_COLUMNS, rows=csv_rows(rows)),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text=found.name)),
    )


def best_of(
    ours: Sequence[BoardRow], totals: Sequence[BoardRow], settings: Settings
) -> dict[str, object]:
    """Return the best row judged here with its setting, and the best of those published."""
    best = ours[0] if ours else None
    return {
        "best_row": best,
        "best_setting": settings.get(best.submission) if best else None,
        "published": max(totals, key=lambda one: one.score.fast_at_1 or 0.0, default=None),
    }


def model_called(slug: str) -> tuple[LanguageModel, int]:
    """Return the model, and for how many problems its public submissions have kernels, judged or
    not, in one query. Raises Http404."""
    # A model has few submissions, and there are many public ones.
    seen = Submission.objects.alias(shown=unindexed("visibility")).filter(
        **{"shown": Visibility.PUBLIC, "moderation": Moderation.ACCEPTED, "is_practice": False},
        model=OuterRef(OuterRef("pk")),
    )
    kernels = Kernel.objects.filter(submission__in=seen).order_by()
    counted = kernels.values("submission__model").annotate(n=Count("problem", distinct=True))
    models = LanguageModel.objects.visible().annotate(handed_in=Subquery(counted.values("n")))
    models = models.annotate(**counted_submissions())
    found = models.filter(slug=slug).first()
    if found is None:
        raise Http404
    return found, vars(found)["handed_in"] or 0


def history(entries: Sequence[BoardRow], settings: Settings) -> list[dict[str, object]]:
    """Return what was handed in, the newest first; nothing where that is one submission."""
    names = named(entries)
    dated = sorted(entries, key=lambda entry: entry.date or "", reverse=True)
    made: list[dict[str, object]] = [
        {
            **_where(entry, names[entry.submission], settings.get(entry.submission)),
            "day": (entry.date or "")[:10],
            "score": entry.score,
            "backends": ", ".join(entry.backends),
        }
        for entry in dated
    ]
    return made if len(made) > 1 else []


def table_context(
    rows: Sequence[RankedRow], settings: Settings, timed: Mapping[int | None, Shown]
) -> dict[str, object]:
    columns = known_to_any([row.entry for row in rows] + [one.entry for one in timed.values()])
    names = named([row.entry for row in rows if not row.entry.claimed])
    made: list[dict[str, object]] = []
    for row in rows:
        number = row.entry.submission
        name = names.get(number, row.entry.harness)
        own = {**row_context(row, columns), **_where(row.entry, name, settings.get(number))}
        made.append({**own, "under": False})
        if one := timed.get(number):
            own = {**row_context(_apart(one), columns), **_where(one.entry, "timed", one.setting)}
            made.append({**own, "under": True})
    return {
        "columns": columns,
        "rows": made,
        "row_count": len(rows),
        "several": len(settings) > 1,
        "settings_differ": len(set(settings.values())) > 1,
    }


def timed_record(one: Shown) -> dict[str, object]:
    return {**as_record(_apart(one)), "setting": vars(one.setting)}


def _apart(one: Shown) -> RankedRow:
    return RankedRow(place=None, entry=one.entry)


def _where(entry: BoardRow, name: str, setting: boards.Setting | None) -> dict[str, str]:
    """Return a row's name, its setting in words, and the address of the submission in it. A claim
    has neither number nor setting."""
    if setting is None:
        return {"named": name, "setting": "", "url": entry.url}
    address = f"{entry.url}?{setting_query(setting)}"
    return {"named": name, "setting": str(setting), "url": address}


def catalogue() -> Known:
    """Return the problems with titles and sizes of their categories, in one query."""
    problems: dict[int, tuple[str, str]] = {}
    titles: dict[str, str] = {}
    ranked: dict[str, list[int]] = {}
    fields = ("number", "slug", "title", "category", "category_title", "scored", "ranked_from")
    rows = Problem.objects.values_list(*fields)
    for number, slug, title, category, category_title, scored, least in rows:
        problems[number] = (title, url("problem", number, slug))
        titles.setdefault(category, category_title)
        ranked.setdefault(category, []).extend([least] * scored)
    return Known(problems=problems, titles=titles, least=ranked)


def compare_url(each: Sequence[Shown]) -> str:
    """Return the address of its best submissions side by side; empty unless several were judged in
    one setting."""
    setting = setting_of_most(each)
    alike = [one.entry for one in each if one.setting == setting]
    if setting is None or len(alike) < 2:
        return ""
    best = [row.entry.submission for row in placed(alike, usual_sort(setting))]
    pairs = zip(LETTERS, best, strict=False)
    return f"{url('compare')}?{urlencode(list(pairs))}&{setting_query(setting)}"


def matrix_url(entries: Sequence[BoardRow], settings: Settings) -> str:
    """Return the address of the matrix at the row of the best submission; of the whole matrix
    without one."""
    best = next((entry.submission for entry in entries), None)
    return row_url(best, settings[best]) if best else url("matrix")


def extremes(each: Sequence[Shown], settings: Settings, known: Known) -> dict[str, object]:
    """Return the problems that the model is best and worst at in one setting, by the best kernel of
    any submission; worst are those that it never solved, then the slowest. Where nothing was timed
    these are what it solved and what it did not, by number."""
    setting = setting_of_most(each)
    here = [one.entry for one in each if one.setting == setting]
    how = dict(zip((one.submission for one in here), told_apart(here), strict=True))
    by_number = (pair for _, pair in sorted(best_of_each(here).items()))
    ordered = scores.in_order(by_number, lambda pair: pair[1].best_speedup)
    solved = [pair for pair in ordered if pair[1].correct]
    unsolved = [pair for pair in ordered if not pair[1].correct]
    is_timed = tells_times(setting)
    slowest = reversed(solved[MOST_NAMED:] if is_timed else ())
    tail = f"?{setting_query(setting)}" if setting else ""
    anywhere = best_of_each([one.entry for one in each])
    return {
        "setting": str(setting or ""),
        "is_timed": is_timed,
        "best": [_extreme(pair, how, known, tail) for pair in solved[:MOST_NAMED]],
        "worst": [_extreme(pair, how, known, tail) for pair in [*unsolved, *slowest][:MOST_NAMED]],
        "counts": {"best": len(solved), "worst": len(unsolved)},
        "every_url": matrix_url(sorted(here, key=lambda row: -row.score.correct), settings),
        "tried": len(anywhere),
        "solved": sum(cell.correct > 0 for _, cell in anywhere.values()),
    }


def setting_of_most(each: Sequence[Shown]) -> boards.Setting | None:
    """Return the setting that boards begin with, if a submission is shown in it, or else the one
    with most problems; None without any."""
    usual = [one.setting for one in each if one.is_usual]
    tried = Counter[boards.Setting]()
    for one in each:
        tried[one.setting] += len(one.entry.cells)
    return next(iter([*usual, *(setting for setting, _ in tried.most_common())]), None)


def best_of_each(entries: Iterable[BoardRow]) -> dict[int, tuple[BoardRow, Cell]]:
    """Return the best kernel of any submission, by the number of the problem."""
    best: dict[int, tuple[BoardRow, Cell]] = {}
    for entry in entries:
        for cell in entry.cells:
            held = best.get(cell.problem)
            if held is None or _rank(cell) > _rank(held[1]):
                best[cell.problem] = (entry, cell)
    return best


def _rank(cell: Cell) -> tuple[bool, float]:
    return cell.correct > 0, cell.best_speedup or 0.0


def _extreme(
    pair: tuple[BoardRow, Cell], how: Mapping[int | None, str], known: Known, tail: str
) -> dict[str, object]:
    entry, cell = pair
    title, address = known.problems[cell.problem]
    made = (cells.ratio_cell(cell.best_speedup), cells.share_cell(cell.utilisation))
    return {
        "number": cell.problem,
        "title": title,
        "url": address + tail,
        "how": how[entry.submission],
        "verdict": verdict_words(cell.verdict, is_timed=entry.score.is_timed),
        "state": state(cell.verdict),
        "run_url": url("run", cell.run),
        "cells": cells.joined(made if entry.score.is_timed else ()),
    }


def cell_records(entry: BoardRow) -> list[dict[str, object]]:
    """Return every problem of a submission, for the JSON twin."""
    return [{"submission": entry.submission, **cell._asdict()} for cell in entry.cells]


def category_context(
    each: Sequence[Shown], claims: Sequence[Claim], known: Known
) -> dict[str, object]:
    """Return pass@1 by category: a column for each submission, of the problems scored in its
    setting, and one for each published claim, of the problems that its authors count."""
    claimed: dict[str, dict[str, Claim]] = {}
    for claim in claims:
        if claim.category is not None:
            claimed.setdefault(claim.harness, {})[claim.category] = claim
    columns = list(named([one.entry for one in each]).values())
    columns += [f"{harness}, published" for harness in claimed]
    rows = []
    for slug, title in known.titles.items():
        made = [_part(one.entry, slug, known.size(slug, one.setting)) for one in each]
        made += [
            cells.part_cell(claim.correct_at_1, claim.problems) if claim else cells.missing()
            for own in claimed.values()
            for claim in [own.get(slug)]
        ]
        address = url("category", slug)
        rows.append({"title": title, "url": address, "cells": cells.joined(made)})
    return {"category_columns": columns, "categories": rows if columns else []}


def _part(entry: BoardRow, category: str, size: int) -> SafeString:
    """Return the cell of pass@1 with the number of problems that it is of."""
    share = entry.score_in(category, size).pass_at_1
    return cells.part_cell(None if share is None else share * size, size)


@require_safe
def model_page(request: HttpRequest, slug: str, form: str = "html") -> HttpResponseBase:
    """Serve the model of this name, or lead to it from another of its names."""
    try:
        return model(request, slug=slug, form=form)
    except Http404:
        found = LanguageModel.objects.visible().called(slug)
        if found is None or found.slug == slug:
            raise
        return moved_to(request, url("model", found.slug) + ("" if form == "html" else f".{form}"))
