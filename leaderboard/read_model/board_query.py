"""Reads what a board is asked for, and answers it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest

from leaderboard.delivery.pages import BadQuery
from leaderboard.metrics.mechanisms import NCCL
from leaderboard.metrics.thresholds import MOST_P, STEPS_OF_P
from leaderboard.metrics.verdicts import words
from leaderboard.models.choices import BACKENDS
from leaderboard.read_model import boards
from leaderboard.read_model.boards import BoardRow, Setting
from leaderboard.read_model.filters import (
    SETTING_FILTERS,
    Filter,
    Option,
    choice_filter,
    harness_filter,
    setting_filters,
    setting_tail,
)
from leaderboard.read_model.judge_constants import judge_constants
from leaderboard.read_model.published_claims import Claim, entry_of, published
from leaderboard.read_model.scopes import BoardScope, scope
from leaderboard.read_model.setting import tells_times

# What boards offer to count as fast: more than p times the reference.
USUAL_PS = (0.5, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0)


@dataclass(frozen=True, kw_only=True)
class BoardQuery:
    """Holds what a board, its figures, its JSON and CSV show. A link to a submission ends with
    `tail`, for it to show this setting. `other` is the setting in which what is only checked here
    was timed, or the other way round; `known` are all settings with results."""

    scope: BoardScope
    known: tuple[Setting, ...]
    setting: Setting | None
    tail: str
    p: float
    chosen: dict[str, str]
    threshold: Filter
    controls: tuple[Filter, ...]
    other: Setting | None = None
    other_tail: str = ""

    @property
    def harness(self) -> str:
        return self.chosen["harness"]

    def judged(self, ahead: Sequence[str] = ()) -> list[BoardRow]:
        """Return the rows that boards show; `ahead` names details that are read along."""
        return next(iter(self._judged_in({self.setting: self.scope.scored}, ahead)), [])

    def judged_beside(self) -> tuple[list[BoardRow], list[BoardRow]]:
        """Return the same rows, and those of the other setting."""
        scored = {self.setting: self.scope.scored}
        if self.other:
            scored[self.other] = self.scope.scored_on(self.other.world_size)
        nothing: list[BoardRow] = []
        ours, others, *_ = [*self._judged_in(scored), nothing, nothing]
        return ours, others

    def _judged_in(
        self, scored: Mapping[Setting | None, int], ahead: Sequence[str] = ()
    ) -> list[list[BoardRow]]:
        known = {setting: count for setting, count in scored.items() if setting}
        if not known:
            return []
        return boards.judged_in(
            known,
            p=self.p,
            ahead=ahead,
            category=self.scope.category,
            problems=self.scope.problems,
            harness=self.harness,
            backend=self.chosen["backend"],
            mechanism=self.chosen["mechanism"],
            nccl_free=bool(self.chosen["nccl"]),
            verified=bool(self.chosen["trust"]),
        )

    def claims(self) -> list[Claim]:
        """Return the claims; they say nothing of single kernels, so filters on those leave none."""
        if any(self.chosen[name] for name in ("source", "backend", "mechanism", "nccl", "trust")):
            return []
        return published(category=self.scope.category or None, harness=self.harness)

    def claimed(self, claims: Iterable[Claim]) -> list[BoardRow]:
        return [claim_at(entry_of(one), self.p) for one in claims]


def claim_at(entry: BoardRow, p: float) -> BoardRow:
    """Return the entry with fast_p in place of fast_1: what was claimed is known at 1 only."""
    if p == entry.score.p:
        return entry
    score = entry.score._replace(p=p, fast_at_1=None, fast_at_k=None)
    return dataclasses.replace(entry, score=score)


def board_query(request: HttpRequest) -> BoardQuery:
    """Read the address, in two queries: the categories, and the settings that have results."""
    known = boards.known_settings()
    setting, settings = setting_filters(request, known)
    found = scope(request, "category", "source", ranks=setting.world_size if setting else None)
    kinds = kernel_filters(request, found, is_timed=tells_times(setting))
    other = other_setting(request, setting, known)
    threshold = threshold_filter(request)
    return BoardQuery(
        scope=found,
        known=tuple(known),
        setting=setting,
        tail=setting_tail(setting, known),
        other=other,
        other_tail=setting_tail(other, known),
        p=float(threshold.value),
        chosen={control.name: control.value for control in kinds},
        threshold=threshold,
        controls=tuple(
            sorted((*kinds, *map(_folded, settings)), key=lambda control: control.folded)
        ),
    )


def other_setting(
    request: HttpRequest, setting: Setting | None, known: Iterable[Setting]
) -> Setting | None:
    """Return the first setting that is alike but for hardware, judge and placement, unless the
    address asks for a setting or for some kernels only."""
    asked = (*SETTING_FILTERS, "source", "backend", "mechanism", "nccl", "trust")
    if setting is None or any(request.GET.get(name) for name in asked):
        return None
    own = _kind_of(setting)
    others = (one for one in known if one.is_timed != setting.is_timed)
    return next((one for one in others if _kind_of(one) == own), None)


def _kind_of(setting: Setting) -> tuple[str, str, str]:
    return setting.size, setting.dtype, setting.profile


def _folded(control: Filter) -> Filter:
    return control._replace(folded=control.name not in ("hardware", "profile", "placement"))


def kernel_filters(
    request: HttpRequest, found: BoardScope, *, is_timed: bool
) -> tuple[Filter, ...]:
    """Return the controls that say which problems, submissions and kernels count. Where ranks share
    a GPU nobody sees NCCL at work, so those on NCCL say that they go by the source."""
    titles = list(found.titles.items())
    sources = [(name, name) for name in found.sources]
    tags = {tag: words(tag) for tag in judge_constants()["mechanisms"]}
    without = "No NCCL calls"
    if not is_timed:
        tags[NCCL], without = "nccl, by the source alone", "No NCCL in the source"
    folded = (
        choice_filter(request, "source", "Source codebase", sources, "Any codebase"),
        choice_filter(request, "backend", "Backend", BACKENDS, "Any backend"),
        choice_filter(request, "mechanism", "Mechanism", tags.items(), "Any mechanism"),
        choice_filter(request, "nccl", "NCCL", [("no", without)], "With or without"),
        choice_filter(request, "trust", "Trust", [("verified", "Judged here")], "Any"),
    )
    return (
        choice_filter(request, "category", "Category", titles, "All categories"),
        harness_filter(request),
        *(control._replace(folded=True) for control in folded),
    )


def threshold_filter(request: HttpRequest) -> Filter:
    """Return the control of p, by which fast_p counts: usual values and what the address asks for,
    in steps of 1/20. Raises BadQuery."""
    text = request.GET.get("p", "") or "1"
    allowed = f"a number from 0 to {MOST_P} in steps of {1 / STEPS_OF_P:g}, such as 1.5"
    try:
        steps = float(text) * STEPS_OF_P
    except ValueError:
        raise BadQuery("p", text, (allowed,)) from None
    if not 0 <= steps <= MOST_P * STEPS_OF_P or abs(steps - round(steps)) > 1e-6:
        raise BadQuery("p", text, (allowed,))
    asked = round(steps) / STEPS_OF_P
    options = tuple(
        Option(value=f"{p:g}", text=f"Faster than {'' if p == 1 else f'{p:g}× '}NCCL")
        for p in sorted({*USUAL_PS, asked})
    )
    return Filter(name="p", label="Threshold", value=f"{asked:g}", options=options, default="1")
