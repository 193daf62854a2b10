"""Answers the question of the first page in one sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leaderboard.board_pages.board_groups import OtherSetting, kind_of
from leaderboard.kit.visible import visible
from leaderboard.metrics import scores
from leaderboard.metrics.board_numbers import BY_KEY
from leaderboard.read_model.boards import BoardRow, Setting
from leaderboard.read_model.columns import CHECKED_SORT, DEFAULT_SORT, is_tied
from leaderboard.read_model.filters import count_phrase
from leaderboard.read_model.setting import machine_in_words

MOST_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Headline:
    """Holds the answer: `lead` in a word or two, then a sentence around a model's name, which links
    to `url`. `notes` are sentences that say how sure it is."""

    lead: str
    opens: str = ""
    model: str = ""
    url: str = ""
    says: str = ""
    notes: tuple[str, ...] = ()


def headline(
    rows: Sequence[BoardRow], setting: Setting | None, elsewhere: OtherSetting
) -> Headline | None:
    """Say how far the best model is, from the rows of a board: judged here, else published.

    Returns None where a board has no model. People and baselines are no models.
    """
    here = best_first(row for row in rows if kind_of(row) == "judged")
    if setting and here:
        return _timed(here, rows, setting) if setting.is_timed else _checked(here, setting)
    claimed = best_first(row for row in rows if kind_of(row) == "claimed")
    own = OtherSetting(rows, setting) if setting and setting.is_timed else elsewhere
    return _published(claimed, own) if claimed else None


def best_first(rows: Iterable[BoardRow]) -> list[BoardRow]:
    """Sort rows by their headline share; equal ones stay in their order."""
    return scores.in_order(rows, lambda row: row.headline)


def faster(row: BoardRow) -> int:
    """Count the problems on which a sampled kernel is surely faster than the reference."""
    return round((row.score.fast_at_1 or 0.0) * row.score.scored)


def correct(row: BoardRow) -> int:
    """Count the problems that a sampled kernel solves."""
    return round((row.score.pass_at_1 or 0.0) * row.score.scored)


def _timed(models: Sequence[BoardRow], rows: Sequence[BoardRow], setting: Setting) -> Headline:
    best = models[0]
    count, scored = faster(best), best.score.scored
    own = [row for row in rows if row.house and row.score.is_timed]
    by_hand = f" Kernels written by hand beat it on {max(map(faster, own))}." if own else ""
    return Headline(
        lead=_lead(count, scored),
        opens=f"On {machine_in_words(setting)} the best model,",
        model=best.model,
        url=best.url,
        says=f", beats {_rival(best)} on {count} of {count_phrase(scored, 'problem')}.{by_hand}",
        notes=(*_tied(best, models), *_judged(best)),
    )


def _checked(models: Sequence[BoardRow], setting: Setting) -> Headline:
    best = models[0]
    scored = count_phrase(best.score.scored, "problem")
    return Headline(
        lead="Checked, not timed.",
        opens=f"On {machine_in_words(setting)}, the best model,",
        model=best.model,
        url=best.url,
        says=f", is correct on {correct(best)} of {scored}.",
        notes=(*_tied(best, models), *_judged(best)),
    )


def _published(claimed: Sequence[BoardRow], timed: OtherSetting) -> Headline:
    best = claimed[0]
    where = f" on {best.where}" if best.where else ""
    own = [row for row in timed.entries if row.house and row.score.is_timed]
    by_hand = ""
    if own and timed.setting:
        most, machine = max(own, key=faster), machine_in_words(timed.setting)
        of = count_phrase(most.score.scored, "problem")
        by_hand = f" On {machine}, kernels written by hand beat it on {faster(most)} of {of}."
    return Headline(
        lead="Nothing judged here yet.",
        opens="By their authors' own check, the best model,",
        model=best.model,
        url=best.url,
        says=f", beats {_rival(best)} on {faster(best)} of "
        f"{count_phrase(best.score.scored, 'problem')}{where}.{by_hand}",
        notes=_tied(best, claimed),
    )


def _lead(count: int, scored: int) -> str:
    if 2 * count < scored:
        return "Not yet." if count else "No."
    return "Yes." if count == scored else "On most problems."


def _rival(row: BoardRow) -> str:
    return "NCCL" if row.score.p == 1.0 else f"NCCL by more than {row.score.p:g}×"


def _tied(best: BoardRow, rivals: Sequence[BoardRow]) -> tuple[str, ...]:
    """Name the others that are tied with the best, as brackets of the board say."""
    column = BY_KEY[DEFAULT_SORT if best.score.is_timed else CHECKED_SORT]
    tied = [one for one in rivals if one is not best and is_tied(column, best, one)]
    names = [
        visible(one.model if one.model != best.model else f"{one.model} ({one.harness})")
        for one in tied
    ]
    if not names:
        return ()
    name = visible(best.model)
    if len(names) == len(rivals) - 1 and len(names) > 1:
        others = f"the other {len(names)} submissions"
        return (f"No clear winner: {name} and {others} are statistically tied.",)
    names = list(dict.fromkeys(names))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (f"Statistically tied with {name}: {', '.join(names[:MOST_NAMED])}{more}.",)


def _judged(best: BoardRow) -> tuple[str, ...]:
    score = best.score
    if score.attempted >= score.scored:
        return ()
    ran = f"{visible(best.model)} was judged on {score.attempted} of the {score.scored} problems"
    return (f"{ran}; problems not judged yet count as failed.",)
