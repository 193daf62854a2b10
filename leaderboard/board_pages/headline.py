"""Says in a sentence or two what a board answers: how far the best models are. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.board_pages.board_groups import OtherSetting, where_in_words
from leaderboard.board_pages.profiles import named
from leaderboard.delivery.cells import share_text
from leaderboard.kit.visible import visible
from leaderboard.metrics.intervals import wilson_interval
from leaderboard.metrics.scores import Score
from leaderboard.metrics.verdicts import INPUTS_OF
from leaderboard.read_model.boards import BoardRow, Setting
from leaderboard.read_model.published_claims import Claim

MOST_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Holds one sentence around a model's name, which links to its page or its submission."""

    opens: str
    model: str
    url: str
    says: str


def answers(
    entries: Sequence[BoardRow],
    claims: Sequence[Claim],
    setting: Setting | None,
    elsewhere: OtherSetting,
) -> list[Answer]:
    """Return what was published of the best model, and what was found here; nothing of which there
    are no rows. People and baselines are no models."""
    models = [entry for entry in entries if not (entry.baseline or entry.by_people)]
    hardware = claims[0].publication_says.get("setting", {}).get("hardware", "") if claims else ""
    here = [entry for entry in models if not entry.claimed]
    found = [_published([entry for entry in models if entry.claimed], str(hardware))]
    found.append(_judged(here, setting))
    there = [entry for entry in elsewhere.entries if not (entry.baseline or entry.by_people)]
    found.append(_judged(there, elsewhere.setting) or _house(elsewhere))
    return [one for one in found if one]


def _headline(entry: BoardRow) -> float:
    """Return the share that a sentence goes by: of all samples, where a table shows one of each."""
    score = entry.score
    return (score.pass_at_k if score.fast_at_k is None else score.fast_at_k) or 0.0


def _published(claims: Sequence[BoardRow], hardware: str) -> Answer | None:
    if not claims:
        return None
    best = max(claims, key=_headline)
    where = f" on {hardware}" if hardware else ""
    return Answer(
        opens="Published: the best model,",
        model=best.model,
        url=best.url,
        says=f" ({best.harness}{_samples(best.score)}), solves {best.score.correct} of "
        f"{best.score.scored} problems{_faster(best.score)}, by the check of those who published "
        f"it{where}.{_alike(best, claims)}",
    )


def _judged(models: Sequence[BoardRow], setting: Setting | None) -> Answer | None:
    if setting is None or not models:
        return None
    told = zip(models, _told_apart(models), strict=True)
    best, harness = max(told, key=lambda pair: _headline(pair[0]))
    score = best.score
    ranks = where_in_words(setting)
    where = f", on {ranks}" if setting.is_timed else f"; {ranks} shared a GPU, nothing was timed"
    right = "" if setting.is_timed else _sure(score.pass_at_k, score.scored)
    return Answer(
        opens=f"{'Timed' if setting.is_timed else 'Checked'} here on "
        f"{INPUTS_OF[setting.profile]}: the best,",
        model=best.model,
        url=best.url,
        says=f" ({harness}{_samples(score)}), solves {score.correct} of "
        f"{score.scored}{right}{_faster(score) if setting.is_timed else ''}, of "
        f"{score.attempted} judged{where}.{_alike(best, models)}",
    )


def _house(elsewhere: OtherSetting) -> Answer | None:
    """Return what this site's own kernels reach where no model was timed; None without them."""
    setting, own = elsewhere.setting, [entry for entry in elsewhere.entries if entry.house]
    if setting is None or not setting.is_timed or not own:
        return None
    score = own[0].score
    return Answer(
        opens="Timed here: no model yet. This site's own",
        model=own[0].model,
        url=own[0].url + elsewhere.tail,
        says=f" solve {score.correct} of {score.scored}{_faster(score, 'beat')}, on "
        f"{where_in_words(setting)}.",
    )


def _alike(best: BoardRow, rivals: Sequence[BoardRow]) -> str:
    """Return a sentence that names the others whose intervals reach that of the best."""
    least = wilson_interval(_headline(best), best.score.scored)
    names = []
    for one, harness in zip(rivals, _told_apart(rivals), strict=True):
        own = wilson_interval(_headline(one), one.score.scored)
        if one is not best and own and least and own.high >= least.low:
            names.append(f"{visible(one.model)} ({harness})")
    if not names:
        return ""
    names = list(dict.fromkeys(names))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f" Not distinguishable from it: {', '.join(names[:MOST_NAMED])}{more}."


def _told_apart(entries: Sequence[BoardRow]) -> list[str]:
    """Return the harness of each and, where its model has another submission of it, which one this
    is."""
    times = Counter((one.model, one.harness) for one in entries)
    return [
        named(one) if one.submission and times[one.model, one.harness] > 1 else one.harness
        for one in entries
    ]


def _sure(share: float | None, scored: int) -> str:
    """Return a share in words with its interval."""
    found = None if share is None else wilson_interval(share, scored)
    if found is None:
        return ""
    return f" ({_share(share)}, 95\u00a0% interval {_share(found.low)} to {_share(found.high)})"


def _share(value: float | None) -> str:
    return share_text(value).replace(" ", "\u00a0")


def _samples(score: Score) -> str:
    return f", {score.k} samples" if score.k > 1 else ""


def _faster(score: Score, beats: str = "beats") -> str:
    if score.fast_at_k is None:
        return ""
    rival = "NCCL" if score.p == 1.0 else f"{score.p:g}× NCCL"
    count = round(score.fast_at_k * score.scored)
    return f" and {beats} {rival} on {count}{_sure(score.fast_at_k, score.scored)}"
