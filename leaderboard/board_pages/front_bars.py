"""Draws the one chart of the first page: how many problems each model solves, and how fast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from leaderboard.board_pages.board_groups import kind_of
from leaderboard.board_pages.headline import Headline, best_first, correct, faster
from leaderboard.delivery.cards import MOST_BARS, Card, CardBar
from leaderboard.kit.visible import visible
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.columns import RankedRow

MOST_MODELS = 5
QUESTION = "Can language models write fast multi-GPU kernels?"


@dataclass(frozen=True, kw_only=True)
class Bar:
    """Describes one bar. Widths and places are per cent of all scored problems, as text.

    `judged` counts problems. `interval` is where the 95 % interval of the row's share begins and
    how wide it is. `claim` is the share that the authors of PKB published of the same model and
    harness.
    """

    name: str
    note: str
    url: str
    house: bool
    correct: int
    faster: int | None
    judged: int
    wide_judged: str
    wide_correct: str
    wide_faster: str
    interval: tuple[str, str] | None
    claim: str

    @property
    def says(self) -> str:
        solved = f"{self.correct} correct"
        found = solved if self.faster is None else f"{self.faster} faster than NCCL, {solved}"
        return f"{self.name}: {found}"


def front_bars(rows: Sequence[RankedRow], tail: str) -> list[Bar]:
    """Return the bar of the site's own kernels, then one of each of the best models; `tail` ends
    the address of a submission. Empty where no model was judged here."""
    every = [row.entry for row in rows]
    models = list(_one_of_each(best_first(row for row in every if kind_of(row) == "judged")))
    claims = {(row.model, row.harness): row for row in every if row.claimed}
    own = best_first(row for row in every if row.house)[:1] if models else []
    shown = (*own, *models[:MOST_MODELS])
    return [_bar(row, claims.get((row.model, row.harness)), tail) for row in shown]


def front_card(answer: Headline | None, bars: Sequence[Bar]) -> Card:
    """Return the picture for links to the first page: its answer, and its bars."""
    told = answer and f"{answer.lead} {answer.opens} {visible(answer.model)}{answer.says}"
    faster = any(bar.faster is not None for bar in bars)
    shown = tuple(
        CardBar(name=bar.name, value=f"{count} of {bar.judged}", share=float(wide) / 100)
        for bar in bars[:MOST_BARS]
        for count, wide in [
            (bar.correct, bar.wide_correct) if bar.faster is None else (bar.faster, bar.wide_faster)
        ]
    )
    says = "Problems on which kernels are faster than NCCL" if faster else "Problems solved"
    return Card(title=told or QUESTION, says=says if bars else "", bars=shown)


def _one_of_each(models: Iterable[BoardRow]) -> Iterator[BoardRow]:
    """Yield the first row of each model."""
    done: set[str] = set()
    for row in models:
        if row.slug not in done:
            done.add(row.slug)
            yield row


def _bar(row: BoardRow, claim: BoardRow | None, tail: str) -> Bar:
    score = row.score
    shares = (score.pass_at_1 or 0.0, score.fast_at_1 or 0.0)
    wide = [f"{100 * share:.1f}" for share in shares]
    own = None if row.house else _interval(row)
    published = claim.score if claim else None
    share = None
    if published:
        share = published.fast_at_1 if score.is_timed else published.pass_at_1
    return Bar(
        name="Written by hand" if row.house else visible(row.model),
        note=f"{', '.join(row.backends)}, {'this site' if row.house else row.harness}",
        url=row.url_with(tail),
        house=row.house,
        correct=correct(row),
        faster=faster(row) if score.is_timed else None,
        judged=score.attempted,
        wide_judged=f"{100 * score.attempted / score.scored:.1f}" if score.scored else "0",
        wide_correct=wide[0],
        wide_faster=wide[1] if score.is_timed else "",
        interval=own,
        claim="" if share is None or score.p != 1.0 else f"{100 * share:.1f}",
    )


def _interval(row: BoardRow) -> tuple[str, str] | None:
    found = row.headline_interval
    if found is None:
        return None
    return f"{100 * found.low:.1f}", f"{100 * (found.high - found.low):.1f}"
