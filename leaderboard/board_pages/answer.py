"""Says in a sentence or two what a board answers: how far the best models are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.delivery.cells import share_text
from leaderboard.metrics.scores import Score
from leaderboard.read_model.boards import Entry, Setting
from leaderboard.read_model.published_claims import Claim


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Holds one sentence around a model's name, which links to its page or its submission."""

    opens: str
    model: str
    url: str
    says: str


def answers(
    entries: Sequence[Entry], claims: Sequence[Claim], setting: Setting | None
) -> list[Answer]:
    """Return what was published of the best model, and what was found here; nothing of which there
    are no rows. People and baselines are no models."""
    models = [entry for entry in entries if not (entry.baseline or entry.by_people)]
    published = max((e for e in models if e.claimed), key=_standing, default=None)
    judged = max((e for e in models if not e.claimed), key=_standing, default=None)
    found = []
    if published and claims:
        hardware = claims[0].publication_says.get("setting", {}).get("hardware", "")
        found.append(_published(published, hardware))
    if judged and setting:
        found.append(_judged(judged, setting))
    return found


def _standing(entry: Entry) -> tuple[float, float]:
    score = entry.score
    return score.fast_at_k or 0.0, score.pass_at_k or 0.0


def _published(best: Entry, hardware: str) -> Answer:
    score = best.score
    where = f" on {hardware}" if hardware else ""
    return Answer(
        opens="Published: the best model,",
        model=best.model,
        url=best.url,
        says=f" ({best.harness}{_samples(score)}), solves {score.correct} of {score.scored} "
        f"problems{_faster(score)}, by the check of those who published it{where}.",
    )


def _judged(best: Entry, setting: Setting) -> Answer:
    score = best.score
    low, high = score.pass_at_1_interval or (None, None)
    found = f"pass@1 {_share(score.pass_at_1)}, 95\u00a0% interval {_share(low)} to {_share(high)}"
    ranks = f"{setting.world_size} ranks of {setting.hardware_id}"
    where = f", on {ranks}" if setting.is_timed else f"; {ranks} shared a GPU, nothing was timed"
    return Answer(
        opens=f"{'Timed' if setting.is_timed else 'Checked'} here on secret inputs: the best,",
        model=best.model,
        url=best.url,
        says=f" ({best.harness}{_samples(score)}), solves {score.correct} of {score.scored}"
        f"{_faster(score) if setting.is_timed else ''} ({found}), of "
        f"{score.attempted} that it tried{where}.",
    )


def _share(value: float | None) -> str:
    return share_text(value).replace(" ", "\u00a0")


def _samples(score: Score) -> str:
    return f", {score.k} samples" if score.k > 1 else ""


def _faster(score: Score) -> str:
    if score.fast_at_k is None:
        return ""
    rival = "NCCL" if score.p == 1.0 else f"{score.p:g}× NCCL"
    return f" and beats {rival} on {round(score.fast_at_k * score.scored)}"
