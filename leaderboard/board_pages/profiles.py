"""Shows PKB's own check beside hidden inputs: what passes the one, and fails the other, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django.http import HttpRequest

from leaderboard.board_pages.profile_reasons import (
    PARAMETERS,
    card_of,
    reason_frame,
    reason_rows,
    reasons_of,
)
from leaderboard.delivery import cells, citing
from leaderboard.delivery.pages import Crumb, Page, Table, canonical_query, public_page
from leaderboard.figures.charts import profiles as charts
from leaderboard.figures.charts.profiles import ProfileCounts
from leaderboard.figures.findings import said
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, figure, framed
from leaderboard.kit.links import url, with_query
from leaderboard.metrics.verdicts import state, verdict_words, words
from leaderboard.models import Problem
from leaderboard.read_model import boards
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.filters import setting_filters
from leaderboard.read_model.profile_comparison import (
    Beside,
    ProfileOutcome,
    beside,
    settings_of_both,
)
from leaderboard.read_model.setting import tells_times

COUNTED = ("submission", "model", "harness", "answered", "unjudged")
OUTCOME = ("verdict", "cause", "run")
COLUMNS = (
    *("submission", "model", "harness", "problem"),
    *(f"{profile}_{name}" for profile in ("upstream", "hardened") for name in OUTCOME),
)


@public_page(*PARAMETERS)
def profiles(request: HttpRequest) -> Page:
    setting, controls = setting_filters(request, settings_of_both(boards.known_settings()))
    found = beside(setting) if setting else []
    titles = dict(Problem.objects.values_list("number", "title"))
    is_timed = tells_times(setting)
    records = [record for one in found for record in records_of(one)]
    counts, reasons = list(map(counts_of, found)), reasons_of(found)
    query, totals = canonical_query(request, PARAMETERS), totals_of(found, counts)
    title = title_of(totals)
    return Page(
        template="profiles.html",
        section="board",
        context={
            "page_url": url("profiles"),
            "filters": controls,
            "said": str(setting.in_words("profile")) if setting else "",
            "totals": totals,
            "title": title,
            "rows": list(map(_row, found, counts)),
            "differing": list(_differing(found, titles, is_timed=is_timed)),
            "reasons": reason_rows(reasons, titles, is_timed=is_timed),
            "why": reason_frame(reasons, query),
            "both": framed(both_profiles, query, title=both_title(totals))
            if len(found) >= LEAST_DRAWN
            else None,
            "cite": citing.of_page(request, with_query(url("profiles"), query)),
        },
        data={
            "setting": setting and vars(setting),
            "submissions": [{name: getattr(one, name) for name in COUNTED} for one in found],
            "problems": records,
        },
        table=Table.of(COLUMNS, records),
        card=lambda: card_of(title, reasons),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text="PKB's check and hidden inputs"),
        ),
    )


@figure(
    "both-profiles",
    "PKB's check and hidden inputs",
    "Problems judged under both, by submission and by what they pass.",
    *PARAMETERS,
)
def both_profiles(request: HttpRequest) -> Drawn:
    setting, _ = setting_filters(request, settings_of_both(boards.known_settings()))
    found = beside(setting) if setting else []
    counts = list(map(counts_of, found))
    return Drawn(
        spec=charts.both_profiles(counts),
        table=Table(columns=("Submission", *ProfileCounts._fields[1:]), rows=counts),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text="PKB's check and hidden inputs", url=url("profiles")),
        ),
        under=setting.in_words("profile") if setting else "",
        title=both_title(totals_of(found, counts)),
    )


def counts_of(one: Beside) -> ProfileCounts:
    return ProfileCounts(
        f"{one.model} ({named(one)})",
        *(
            len(one.that_pass(upstream=upstream, hardened=hardened))
            for upstream, hardened in ((True, True), (True, False), (False, True), (False, False))
        ),
    )


def named(one: Beside | BoardRow) -> str:
    """Return what distinguishes submissions of one model."""
    return ", ".join((one.harness, *map(words, one.backends), f"no. {one.submission}"))


def totals_of(found: Sequence[Beside], counts: Sequence[ProfileCounts]) -> dict[str, int]:
    """Return how many problems were judged under both, or have kernels that were not, pass PKB's
    check, and just one of both."""
    return {
        "judged": sum(sum(one[1:]) for one in counts),
        "unjudged": sum(one.unjudged for one in found),
        "upstream": sum(one.both + one.upstream_only for one in counts),
        "upstream_only": sum(one.upstream_only for one in counts),
        "hardened_only": sum(one.hardened_only for one in counts),
    }


def title_of(totals: Mapping[str, int]) -> str:
    """Say how many kernels pass PKB's check alone."""
    failing, passing = totals["upstream_only"], totals["upstream"]
    if not failing:
        return "PKB's check and hidden inputs"
    return f"{failing} of {passing} kernels that pass PKB's check fail on hidden inputs"


def both_title(totals: Mapping[str, int]) -> str:
    """Return the title of the figure with how many kernels pass both checks."""
    passing = totals["upstream"] - totals["upstream_only"]
    return said(both_profiles.title, f"{passing} of {totals['judged']} pass both")


def _row(one: Beside, counts: ProfileCounts) -> dict[str, object]:
    share = len(one.judged)
    passing = (counts.both + counts.upstream_only, counts.both + counts.hardened_only)
    made = [cells.count_cell(share), *(cells.share_cell(own / share) for own in passing)]
    rest = (counts.upstream_only, counts.hardened_only, one.unjudged)
    made += map(cells.count_cell, rest)
    return {
        "model": one.model,
        "named": named(one),
        "url": url("submission", one.submission),
        "cells": cells.joined(made),
    }


def _differing(
    found: Sequence[Beside], titles: dict[int, str], *, is_timed: bool
) -> Iterator[dict[str, object]]:
    """Yield what passes one check only, by problem."""
    for one in found:
        for judged in one.judged:
            if judged.upstream.correct != judged.hardened.correct:
                yield {
                    "number": judged.problem,
                    "title": titles[judged.problem],
                    "model": one.model,
                    "named": named(one),
                    "outcomes": [
                        _told(outcome, is_timed=is_timed)
                        for outcome in (judged.upstream, judged.hardened)
                    ],
                }


def _told(outcome: ProfileOutcome, *, is_timed: bool) -> dict[str, str]:
    return {
        "words": verdict_words(outcome.verdict, is_timed=is_timed),
        "state": state(outcome.verdict),
        "cause": "" if outcome.correct or outcome.cause is None else words(outcome.cause),
        "url": url("run", outcome.run),
    }


def records_of(one: Beside) -> Iterator[dict[str, object]]:
    """Yield a row of the twins for each problem."""
    for judged in one.judged:
        whose = (one.submission, one.model, one.harness, judged.problem)
        told = [
            getattr(own, name) for own in (judged.upstream, judged.hardened) for name in OUTCOME
        ]
        yield dict(zip(COLUMNS, (*whose, *told), strict=True))
