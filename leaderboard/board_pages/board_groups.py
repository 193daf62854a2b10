"""Groups the rows of a board: what else is known of a model folds under its best row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from leaderboard.delivery.paging import PagePart
from leaderboard.metrics.number import Number
from leaderboard.metrics.verdicts import words
from leaderboard.read_model.board_records import as_record
from leaderboard.read_model.boards import BoardRow, Setting
from leaderboard.read_model.columns import DEFAULT_SORT, RankedRow, cells_of, placed
from leaderboard.read_model.setting import machine_in_words

# Of how good a row is, and of how it was made.
Sides = tuple[Sequence[Number], Sequence[Number]]


# A baseline shows all of its kernels, whatever filters ask for: others are compared with it.
UNFILTERED = "not filtered"


def kind_of(entry: BoardRow) -> str:
    if entry.claimed or entry.baseline:
        return "claimed" if entry.claimed else "baseline"
    return "human" if entry.by_people else "judged"


class RowStyle(NamedTuple):
    """Says how a row is drawn: `kind` sets its class, `tie` where in its bracket it stands, `tick`
    whether it can be compared. `tail` ends the address of a submission, `where` is the hardware of
    a row that has another than its board. A row `under` that of the same model does not repeat its
    name."""

    kind: str = "judged"
    tie: str = ""
    tick: bool = False
    tail: str = ""
    where: str = ""
    under: bool = False

    @property
    def kinds(self) -> str:
        kind = "" if self.kind == "judged" else self.kind
        return " ".join(filter(None, (kind, "under" if self.under else "")))

    def notes(self, entry: BoardRow) -> list[str]:
        """List the words next to the vendor: number, hardware, a source that is withheld."""
        number = f"no. {entry.submission}" if self.kind in ("judged", "human") else ""
        withheld = "source withheld" if entry.withheld else ""
        unfiltered = UNFILTERED if entry.unfiltered else ""
        return [word for word in (number, self.where, withheld, unfiltered) if word]


class OtherSetting(NamedTuple):
    """Holds the rows of the setting in which was timed what is only checked here, or the other way
    round; links to these submissions end with `tail`."""

    entries: Sequence[BoardRow] = ()
    setting: Setting | None = None
    tail: str = ""

    @property
    def record(self) -> dict[str, object] | None:
        """Return the JSON form; None where there is no such setting."""
        if self.setting is None:
            return None
        rows = [as_record(RankedRow(place=None, entry=entry)) for entry in self.entries]
        return {"setting": vars(self.setting), "rows": rows}

    @property
    def in_words(self) -> str:
        if self.setting is None:
            return ""
        return (
            f"{'Timed' if self.setting.is_timed else 'Checked'} on {machine_in_words(self.setting)}"
        )


class DrawnRow(NamedTuple):
    """Holds a row with what its look depends on; a `head` is what its group is called."""

    head: str
    row: RankedRow
    look: RowStyle


def table_context(
    rows: Sequence[RankedRow],
    part: PagePart[RankedRow],
    columns: Sides,
    look: RowStyle,
    elsewhere: OtherSetting,
) -> dict[str, object]:
    """Return the rows of a page in groups. `look` is that of a judged row, and has a `tick` where
    rows can be compared."""
    drawn = list(_drawn(rows, part, look, elsewhere))
    return {
        "groups": [
            {
                "head": head,
                "models": [
                    {"rows": [_row_context(one, columns) for one in own], "folded": _folded(own)}
                    for own in _by_model(list(members))
                ],
            }
            for head, members in groupby(drawn, key=lambda one: one.head)
        ],
        "wide": sum(map(len, columns)) + 6 + look.tick,
        "comparable": look.tick,
        "tied": any(row.tie_group for row in rows),
    }


def _by_model(drawn: Sequence[DrawnRow]) -> Iterator[Sequence[DrawnRow]]:
    """Yield each row with those that fold under it."""
    begins = [at for at, one in enumerate(drawn) if not one.look.under]
    for begin, end in pairwise([*begins, len(drawn)]):
        yield drawn[begin:end]


def _folded(own: Sequence[DrawnRow]) -> str:
    """Name what folds under a row: `2 more: checked, published`."""
    under = [words(one.row.entry.trust) for one in own if one.look.under]
    return f"{len(under)} more: {', '.join(dict.fromkeys(under))}" if under else ""


def _row_context(one: DrawnRow, columns: Sides) -> dict[str, object]:
    left, right = (cells_of(one.row.entry, side) for side in columns)
    return {"row": one.row, "look": one.look, "left": left, "right": right}


def _drawn(
    rows: Sequence[RankedRow], part: PagePart[RankedRow], look: RowStyle, elsewhere: OtherSetting
) -> Iterator[DrawnRow]:
    """Yield the rows of the page in their order; a model's claims and its rows from elsewhere
    follow its best row, and those of models without one come last."""
    others = [
        row._replace(place=None, places=None) for row in placed(elsewhere.entries, DEFAULT_SORT)
    ]
    apart = look._replace(kind="other", tail=elsewhere.tail)
    apart = apart._replace(where=machine_in_words(elsewhere.setting) if elsewhere.setting else "")
    claims = [row for row in rows if row.entry.claimed]
    shown = [
        (row, tie) for row, tie in zip(rows, brackets(rows), strict=True) if not row.entry.claimed
    ]
    pinned = sum(kind_of(row.entry) != "judged" for row, _ in shown)
    page = [*shown[:pinned], *shown[pinned + part.start :][: len(part.rows)]]
    names = {row.entry.slug for row, _ in shown}
    done: set[str] = set()
    for row, tie in page:
        own = look._replace(kind=kind_of(row.entry), tie=tie)
        yield DrawnRow("", row, own)
        if row.entry.slug not in done:
            done.add(row.entry.slug)
            between = "tie" if tie in ("tie top", "tie") else ""
            for one, base in _of(row.entry.slug, others, apart, claims, look):
                yield DrawnRow("", one, base._replace(tie=between, under=True))
    for one, base in chain(((row, apart) for row in others), _claimed(claims, look)):
        if one.entry.slug not in names:
            head = elsewhere.in_words if base.kind == "other" else "Published, not run here"
            yield DrawnRow(head, one, base)


def _of(
    slug: str,
    others: Iterable[RankedRow],
    apart: RowStyle,
    claims: Iterable[RankedRow],
    look: RowStyle,
) -> Iterator[tuple[RankedRow, RowStyle]]:
    yield from ((row, apart) for row in others if row.entry.slug == slug)
    yield from ((row, own) for row, own in _claimed(claims, look) if row.entry.slug == slug)


def _claimed(claims: Iterable[RankedRow], look: RowStyle) -> Iterator[tuple[RankedRow, RowStyle]]:
    for row in claims:
        yield row, look._replace(kind="claimed", where=row.entry.where)


def brackets(rows: Sequence[RankedRow]) -> list[str]:
    """Return for each row the class that begins, continues or ends the bracket around its tie
    group; empty where it has none."""
    found = []
    for group, members in groupby(rows, key=lambda row: row.tie_group):
        size = len(list(members))
        if group is None:
            found += [""] * size
        else:
            found += ["tie top", *["tie"] * (size - 2), "tie end"]
    return found
