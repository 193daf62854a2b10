"""Shows the leaderboard: submissions and published claims in one ranked table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl

from django.http import HttpRequest

from leaderboard.board_pages.board_figures import board_figures, too_few
from leaderboard.board_pages.board_groups import (
    OtherSetting,
    RowStyle,
    Sides,
    kind_of,
    table_context,
)
from leaderboard.board_pages.cost_figures import cost_figures
from leaderboard.board_pages.findings import findings
from leaderboard.board_pages.front_bars import front_bars, front_card
from leaderboard.board_pages.headline import headline
from leaderboard.delivery import citing
from leaderboard.delivery.pages import Page, Table, canonical_query, choice, public_page
from leaderboard.delivery.paging import PAGE, PagePart, part_of
from leaderboard.kit.links import url, with_query
from leaderboard.metrics.board_numbers import BY_KEY, NUMBERS, PLAIN
from leaderboard.metrics.number import Number
from leaderboard.metrics.verdicts import INPUTS_OF
from leaderboard.models.staleness import judge_now
from leaderboard.models.summaries import HARDENED
from leaderboard.read_model.board_query import BoardQuery, board_query
from leaderboard.read_model.board_records import CSV_COLUMNS, as_record, csv_rows
from leaderboard.read_model.boards import BoardRow, Setting
from leaderboard.read_model.columns import (
    SORTS,
    WORDS,
    RankedRow,
    Words,
    is_paired,
    known_to_any,
    label_at,
    placed,
    plain_at,
    usual_sort,
)
from leaderboard.read_model.filters import (
    BOARD_PARAMETERS,
    SETTING_FILTERS,
    Filter,
    chips,
    choice_filter,
    count_phrase,
)
from leaderboard.read_model.published_claims import Claim
from leaderboard.read_model.setting import tells_times

# Fewer rows than this say little of models, and the page says so.
FEW_ROWS = 3
# Of submissions judged here; baselines and claims stand on every page.
ROWS_A_PAGE = 100
PARAMETERS = ("sort", "columns", *BOARD_PARAMETERS, PAGE)
EVERY = "all"
# What sorts a board and is seen among all columns only.
UNSEEN = ("date", "harness")
# How a column is called at a p.
Named = Callable[[Number, float], str]


class Order(NamedTuple):
    """Holds by what a board is sorted, and by what it is where its address does not say."""

    sort: str
    usual: str

    @property
    def key(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def by_share(self) -> bool:
        column = BY_KEY.get(self.key)
        return column is not None and column.is_share


@public_page(*PARAMETERS)
def board(request: HttpRequest) -> Page:
    query = board_query(request)
    sort = choice(request, "sort", SORTS, usual := usual_sort(query.setting))
    (ours, others), claims = query.judged_beside(), query.claims()
    rows = placed([*ours, *query.claimed(claims)], sort)
    ranked = [row for row in rows if kind_of(row.entry) == "judged"]
    part = part_of(request, ranked, ROWS_A_PAGE, PARAMETERS)
    elsewhere = OtherSetting(others, query.other, query.other_tail)
    shown = columns_filter(request)
    order = Order(sort, usual)
    every = bool(shown.value) or order.key in UNSEEN
    entries = [*(row.entry for row in rows), *others]
    columns = columns_of(entries) if every else plain_columns(entries, order)
    look = RowStyle(tick=len(ours) - len(ranked) + len(part.rows) > 1, tail=query.tail)
    address = canonical_query(request, BOARD_PARAMETERS)
    kept = canonical_query(request, ("columns", *BOARD_PARAMETERS))
    told = headline([row.entry for row in rows], query.setting, elsewhere)
    return Page(
        template="leaderboard.html",
        section="board",
        context=lambda: {
            **_controls(query, shown, order, kept),
            **_figures(query, ours, claims, address),
            "where": [pair for pair in parse_qsl(address) if pair[0] in SETTING_FILTERS],
            "cite": citing.of_page(request, with_query(url("board"), address)),
            "headline": told,
            "bars": front_bars(rows, query.tail),
            "findings": findings(ours, query.known) if not address else [],
            "paired": paired(order, ranked),
            "every": every,
            "citation": claims[0].citation if claims else "",
            "links": part.links,
            **counted(query, rows, part),
            **table_context(rows, part, columns, look, elsewhere),
            **heads(columns, order, query.p, kept, every=every),
        },
        data=lambda: _record(query, rows, elsewhere),
        table=Table(columns=CSV_COLUMNS, rows=csv_rows(rows)),
        card=lambda: front_card(told, front_bars(rows, query.tail)),
    )


def paired(order: Order, rows: Iterable[RankedRow]) -> bool:
    """Return True if ties go by the problems that two rows share, not by intervals."""
    column = BY_KEY.get(order.key)
    return column is not None and any(is_paired(column, row.entry) for row in rows)


def columns_filter(request: HttpRequest) -> Filter:
    """Return the control that shows every column, or the few that answer the question."""
    return choice_filter(request, "columns", "Columns", [(EVERY, "All columns")], "Main columns")


def _controls(query: BoardQuery, shown: Filter, order: Order, address: str) -> dict[str, object]:
    chosen = _pairs(address, order.sort, order.usual)
    threshold = (query.threshold,) if tells_times(query.setting) else ()
    return {
        "scored": query.scope.scored,
        "page_url": url("board"),
        "filters": (*threshold, *query.controls, shown),
        "p": f"{query.p:g}",
        "sort": "" if order.sort == order.usual else order.sort,
        "by_share": order.by_share,
        "chips": chips((*threshold, *query.controls), url("board"), chosen),
        "is_timed": tells_times(query.setting),
        "inputs": INPUTS_OF[query.setting.profile if query.setting else HARDENED],
    }


def _record(
    query: BoardQuery, rows: Iterable[RankedRow], elsewhere: OtherSetting
) -> dict[str, object]:
    return {
        "setting": query.setting and vars(query.setting),
        "p": query.p,
        "rows": [as_record(row) for row in rows],
        "elsewhere": elsewhere.record,
    }


def _figures(
    query: BoardQuery, ours: Sequence[BoardRow], claims: Sequence[Claim], address: str
) -> dict[str, object]:
    frames, few_told = cost_figures(ours, address)
    return {
        "figures": [*board_figures(query, ours, claims, address), *frames],
        "few_told": [*too_few(ours), *few_told],
    }


def counted(
    query: BoardQuery, rows: Sequence[RankedRow], part: PagePart[RankedRow]
) -> dict[str, object]:
    """Return how many judged and claimed rows there are, and a sentence that names them and their
    setting."""
    judged = sum(not row.entry.claimed and not row.entry.baseline for row in rows)
    claimed = sum(row.entry.claimed for row in rows)
    of = f"{part.start + 1} to {part.start + len(part.rows)} of " if part.links else ""
    parts = [f"{of}{count_phrase(judged, 'submission')} judged here"]
    parts += [count_phrase(claimed, "published claim")] if claimed else []
    rows_in_words = (
        f"Showing {', '.join(parts)}, of {count_phrase(query.scope.scored, 'scored problem')}"
    )
    where = in_words(query.setting)
    return {
        "judged": judged,
        "claimed": claimed,
        "few": query.setting is not None and 0 < judged < FEW_ROWS,
        "said": f"{rows_in_words} · {where}" if where else rows_in_words,
        "narrowed": any(query.chosen.values()),
    }


def in_words(setting: Setting | None) -> str:
    if setting is None:
        return ""
    return (
        f"{setting.world_size} ranks of {setting.hardware_id}, {setting.dtype}, "
        f"size {setting.size}, {setting.profile} inputs, "
        f"{'' if setting.is_timed else 'checks of '}judge version {setting.judge_version}"
        f"{judge_now(setting.judge_version, setting.placement)}"
        f"{'' if setting.is_timed else ', all ranks on one device: checked, not timed'}"
    )


def columns_of(entries: Sequence[BoardRow]) -> Sides:
    """Return the columns that some row has a number in: left of the words, and right of them."""
    columns = known_to_any(entries)
    left = tuple(column for column in columns if column.group != "how")
    return left, tuple(column for column in columns if column.group == "how")


def plain_columns(entries: Sequence[BoardRow], order: Order) -> Sides:
    """Return those of them that answer the question of the page, and what sorts it."""
    known = known_to_any(entries)
    sorting = [column for column in known if column.key == order.key and not column.plain]
    return (*(column for column in PLAIN if column in known), *sorting), ()


def heads(
    columns: Sides, order: Order, p: float, address: str, *, every: bool = True
) -> dict[str, object]:
    left, right = columns
    named = label_at if every else plain_at
    return {
        "left": headings(left, named, order, p, address),
        "right": headings(right, named, order, p, address),
        "explained": _explained({column.key for column in (*left, *right)}, named, p),
        "words": {one.key: heading(one, one.label, order, address) for one in WORDS},
        "fast_wide": sum(column.group == "fast" for column in left),
        "right_wide": sum(column.group == "right" for column in left),
        "how_wide": len(right) + 2,
    }


def _explained(shown: Collection[str], named: Named, p: float) -> list[dict[str, str]]:
    """Explain the numbers in the columns shown, and those below them."""
    return [
        {"label": named(one, p), "unit": one.unit, "means": one.means, "anchor": one.anchor}
        for one in NUMBERS
        if one.anchor and (one.key in shown or one.below in shown)
    ]


def headings(
    columns: Iterable[Number], named: Named, order: Order, p: float, address: str
) -> list[dict[str, str]]:
    return [
        {
            **heading(column, named(column, p), order, address),
            "unit": column.unit,
            "group": column.group,
        }
        for column in columns
    ]


def heading(by: Number | Words, label: str, order: Order, address: str) -> dict[str, str]:
    """Return a header that links to the board sorted by its column, in the other order where it is
    sorted by that already."""
    sort, usual = order
    turned = f"-{by.key}" if sort == by.key else by.key
    parts = (address, "" if turned == usual else f"sort={turned}")
    query = "&".join(filter(None, parts))
    falls = by.falls != sort.startswith("-")
    direction = "descending" if falls else "ascending"
    return {
        "label": label,
        "url": f"{url('board')}?{query}" if query else url("board"),
        "sorted": direction if by.key == sort.removeprefix("-") else "",
    }


def _pairs(address: str, sort: str, usual: str) -> dict[str, str]:
    found = dict(parse_qsl(address))
    return found if sort == usual else {**found, "sort": sort}
