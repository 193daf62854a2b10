"""Shows what beats NCCL, and how: this site's own kernels by family, then how one writes them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponseBase
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from leaderboard.board_pages.house_text import TEXT, Family, Rendered, families, rendered
from leaderboard.delivery import cells, citing
from leaderboard.delivery.cards import Card, bars_of
from leaderboard.delivery.pages import Crumb, Page, Table, canonical_query, public_page
from leaderboard.delivery.redirects import moved_to
from leaderboard.figures.charts import boards as charts
from leaderboard.figures.charts.boards import Spread
from leaderboard.figures.charts.drawing import KERNEL_COLOUR
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, figure, framed
from leaderboard.figures.tables import spread_table
from leaderboard.kit.links import kernel_at, url, with_query
from leaderboard.read_model import boards
from leaderboard.read_model.filters import (
    SETTING_FILTERS,
    Filter,
    setting_filters,
    setting_query,
    setting_tail,
)
from leaderboard.read_model.house_results import HouseResult, house_results, settings_of_house
from leaderboard.read_model.setting import Setting, machine_in_words

PARAMETERS = (*SETTING_FILTERS,)
TITLE = "What beats NCCL, and how"
TOLD = tuple(name for name in HouseResult._fields if name != "title")
COLUMNS = ("family", *TOLD)


@dataclass(frozen=True, kw_only=True)
class Gain:
    """Holds a family with its timed kernels, the fastest beside its reference first."""

    family: Family
    kernels: tuple[HouseResult, ...]

    @property
    def median(self) -> float:
        return statistics.median(one.speedup for one in self.kernels)

    @property
    def faster(self) -> int:
        return sum(one.is_faster for one in self.kernels)


def asked(
    request: HttpRequest, settings: Iterable[Setting]
) -> tuple[Setting | None, list[Filter], list[Gain]]:
    """Return the setting that is asked for, of those with house kernels, with the controls that
    choose it and what these kernels gain there."""
    setting, controls = setting_filters(request, list(settings))
    return setting, controls, gains_of(house_results(setting)) if setting else []


@public_page(*PARAMETERS)
def beats_nccl(request: HttpRequest) -> Page:
    known = boards.known_settings()
    counts = settings_of_house(known)
    setting, controls, gains = asked(request, counts)
    every = [one for gain in gains for one in gain.kernels]
    query, tail = canonical_query(request, PARAMETERS), setting_tail(setting, known)
    records = [record_of(gain.family, one) for gain in gains for one in gain.kernels]
    says, taught = finding(gains), rendered()
    return Page(
        template="beats_nccl.html",
        section="board",
        context=lambda: {
            "opening": taught.opening,
            "body": taught.body,
            "contents": contents_of(gains, taught),
            "page_url": url("beats-nccl"),
            "filters": controls,
            "said": str(setting or ""),
            "where": machine_in_words(setting) if setting else "",
            "fuller": fuller(setting, counts),
            **_medians(every),
            "figure": framed(house_speedups, query, title=says) if says else None,
            "rows": [{"family": gain.family, "cells": _cells(gain)} for gain in gains],
            "gains": [_shown(gain, tail) for gain in gains],
            "cite": citing.of_page(request, with_query(url("beats-nccl"), query)),
        },
        data={
            "setting": setting and vars(setting),
            "families": [_family_record(gain) for gain in gains],
            "kernels": records,
            "markdown": TEXT.read_text(),
        },
        table=Table.of(COLUMNS, records),
        card=lambda: card_of(gains, setting),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text=TITLE),
        ),
    )


@figure(
    "house-speedups",
    "What kernels written by hand gain",
    "A point is a kernel, a box the middle half of its family; families with fewer than"
    f" {LEAST_DRAWN} timed kernels are left out.",
    *PARAMETERS,
    tall=True,
)
def house_speedups(request: HttpRequest) -> Drawn:
    setting, _, gains = asked(request, settings_of_house(boards.known_settings()))
    rows = [_spread(gain) for gain in drawn(gains)]
    return Drawn(
        spec=charts.spreads(rows, colour=KERNEL_COLOUR),
        table=spread_table(rows),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text=TITLE, url=url("beats-nccl")),
        ),
        under=str(setting or ""),
        title=finding(gains),
    )


def gains_of(results: Iterable[HouseResult]) -> list[Gain]:
    """Return the families with timed kernels, the one that gains most first."""
    timed = sorted(results, key=lambda one: -one.speedup)
    made = []
    for family in families():
        own = tuple(one for one in timed if one.problem in family.problems)
        if own:
            made.append(Gain(family=family, kernels=own))
    return sorted(made, key=lambda gain: -gain.median)


def headline(kernels: Sequence[HouseResult]) -> str:
    """Say on how many problems these kernels are surely faster; empty without kernels."""
    if not kernels:
        return ""
    faster = sum(one.is_faster for one in kernels)
    problems = "problem" if len(kernels) == 1 else "problems"
    return f"Kernels written by hand beat NCCL on {faster} of {len(kernels)} {problems}"


def finding(gains: Sequence[Gain]) -> str:
    """Say which family gains most and least, of those that are drawn; empty for too few."""
    own = drawn(gains)
    if len(own) < LEAST_DRAWN:
        return ""
    most, least = own[0], own[-1]
    return (
        f"{most.family.name} gain most (median {cells.ratio_text(most.median)}), "
        f"{least.family.name[0].lower()}{least.family.name[1:]} least "
        f"({cells.ratio_text(least.median)})"
    )


def fuller(setting: Setting | None, counts: Mapping[Setting, int]) -> dict[str, object] | None:
    """Return the setting with the most kernels; None where that is the one shown."""
    most = max(counts, key=lambda one: counts[one], default=None)
    if most is None or setting is None or counts[most] <= counts[setting]:
        return None
    address = with_query(url("beats-nccl"), setting_query(most))
    return {"count": counts[most], "setting": most, "url": address}


def card_of(gains: Sequence[Gain], setting: Setting | None) -> Card:
    """Return the picture for links: the families that gain most."""
    bars = [(one.family.name, one.median, cells.ratio_text(one.median)) for one in drawn(gains)]
    where = f" on {machine_in_words(setting)}" if setting else ""
    return Card(
        title=headline([one for gain in gains for one in gain.kernels]) or TITLE,
        says=f"Median speedup over PyTorch + NCCL{where}, by family" if bars else "",
        bars=bars_of(bars),
    )


def contents_of(gains: Sequence[Gain], taught: Rendered) -> list[dict[str, str]]:
    """Return where the parts of the page begin."""
    own = [{"text": gain.family.name, "anchor": gain.family.anchor} for gain in gains]
    head = [{"text": "By family", "anchor": "families"}] if gains else []
    return [*head, *own, *taught.contents]


def drawn(gains: Iterable[Gain]) -> list[Gain]:
    """Return the families with enough kernels for a picture."""
    return [gain for gain in gains if len(gain.kernels) >= LEAST_DRAWN]


def median_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _medians(every: Sequence[HouseResult]) -> dict[str, object]:
    return {
        "headline": headline(every),
        "median": median_of(one.speedup for one in every),
        "bound": median_of(one.utilisation for one in every),
        "bound_of_nccl": median_of(one.bound_of_reference for one in every),
    }


def _cells(gain: Gain) -> SafeString:
    speedups = [one.speedup for one in gain.kernels]
    ends = (min(speedups), max(speedups)) if len(speedups) > 1 else (None, None)
    return cells.joined(
        [
            cells.fraction_cell(gain.faster, len(gain.kernels)),
            cells.interval_cell(gain.median, *ends),
            cells.per_cent_cell(median_of(one.utilisation for one in gain.kernels)),
            cells.per_cent_cell(median_of(one.bound_of_reference for one in gain.kernels)),
        ]
    )


def _shown(gain: Gain, tail: str) -> dict[str, object]:
    """Return what the page says of a family, and of each of its kernels."""
    return {
        "family": gain.family,
        "median": gain.median,
        "faster": gain.faster,
        "count": len(gain.kernels),
        "kernels": [
            {
                "told": one,
                "problem_url": url("problem", one.problem, one.slug) + tail,
                "source_url": kernel_at(one.kernel, one.run),
                "run_url": url("run", one.run),
                "timeline_url": f"{url('figure', 'timeline')}?run={one.run}",
                "cells": cells.joined(
                    [
                        cells.interval_cell(one.speedup, one.low, one.high),
                        cells.time_cell(one.kernel_us),
                        cells.time_cell(one.baseline_us),
                        cells.per_cent_cell(one.utilisation),
                        cells.per_cent_cell(one.idle),
                    ]
                ),
            }
            for one in gain.kernels
        ],
    }


def _spread(gain: Gain) -> Spread:
    return Spread(
        model=gain.family.name,
        name=gain.family.name,
        problems=tuple(f"{one.problem}. {one.title}" for one in gain.kernels),
        speedups=tuple(one.speedup for one in gain.kernels),
        links=tuple(url("run", one.run) for one in gain.kernels),
    )


def _family_record(gain: Gain) -> dict[str, object]:
    family = gain.family
    numbers = {"kernels": len(gain.kernels), "faster": gain.faster, "median": gain.median}
    return {"name": family.name, "problems": sorted(family.problems), "why": family.why, **numbers}


def record_of(family: Family, one: HouseResult) -> dict[str, object]:
    """Return a row of the twins."""
    return {"family": family.name, **{name: getattr(one, name) for name in TOLD}}


@require_safe
def moved(request: HttpRequest, form: str = "html") -> HttpResponseBase:
    """Redirect the address that this page had before."""
    return moved_to(request, url("beats-nccl" if form == "html" else f"beats-nccl-{form}"))
