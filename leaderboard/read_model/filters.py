"""Reads the controls of a page, whose state is its address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest

from leaderboard.delivery.pages import DRAWN, Redirect, choice
from leaderboard.kit.links import url
from leaderboard.metrics.verdicts import SETTING_WORDS
from leaderboard.models import Hardware, Harness
from leaderboard.read_model.boards import IN_WORDS, Setting

BOARD_PARAMETERS = (
    *("p", "category", "harness", "source", "backend", "mechanism", "nccl", "trust"),
    *("hardware", "ranks", "size", "dtype", "profile", "judge", "placement"),
)
SETTING_FILTERS = {
    "hardware": ("hardware_id", "Hardware"),
    "ranks": ("world_size", "Ranks"),
    "size": ("size", "Size"),
    "dtype": ("dtype", "Type"),
    "profile": ("profile", "Inputs"),
    "judge": ("judge_version", "Judge"),
    "placement": ("placement", "Placement"),
}


class Option(NamedTuple):
    value: str
    text: str


class Nearest(NamedTuple):
    """Describes a setting with results, where the one that was asked for has none."""

    text: str
    query: str


class Filter(NamedTuple):
    """Describes a select, at `default` where the address has none. One that is `folded` lies behind
    "More filters"; what `follows` another is left to the page when that one changes."""

    name: str
    label: str
    value: str
    options: tuple[Option, ...]
    default: str = ""
    folded: bool = False
    follows: str = ""
    nearest: Nearest | None = None

    @property
    def is_set(self) -> bool:
        return self.value != self.default

    @property
    def text(self) -> str:
        return next((one.text for one in self.options if one.value == self.value), self.value)


def setting_filters(
    request: HttpRequest, settings: Sequence[Setting]
) -> tuple[Setting | None, list[Filter]]:
    """Return the first setting that the address allows, and a control for each part that varies."""
    chosen = next(_agreeing(request, settings), None)
    controls = []
    for name, (attribute, label) in SETTING_FILTERS.items():
        values = sorted({str(getattr(setting, attribute)) for setting in settings})
        if name == "hardware" and _is_class(request.GET.get(name, ""), values):
            values.append(request.GET[name])
        asked = choice(request, name, values)
        if len(values) < 2:
            continue
        usual = str(getattr(settings[0], attribute))
        value = asked or str(getattr(chosen, attribute, usual))
        control = Filter(
            name=name,
            label=label,
            value=value,
            options=tuple(Option(value=v, text=_value_in_words(attribute, v)) for v in values),
            default=usual if asked else value,
            follows="" if name == "hardware" else "hardware",
        )
        controls.append(control)
    if settings and (drawn := request.GET.get(DRAWN)):
        # Without scripts a form also says what the page had chosen for the hardware before.
        is_same = request.GET.get("hardware") == drawn
        raise Redirect("" if is_same else nearest(request, settings).query)
    if chosen is None and controls:
        controls[0] = controls[0]._replace(nearest=nearest(request, settings))
    return chosen, controls


def _value_in_words(attribute: str, value: str) -> str:
    """Return a part of a setting in words that need no label: `4 ranks`."""
    words = {**IN_WORDS, "size": "{} size"}
    return SETTING_WORDS.get(value) or words.get(attribute, "{}").format(value)


def _is_class(wanted: str, judged: Sequence[str]) -> bool:
    """Return True for a class of hardware on which nothing that counts was judged."""
    unknown = wanted != "" and wanted not in judged
    return unknown and Hardware.objects.filter(pk=wanted).exists()


def _agreeing(request: HttpRequest, settings: Iterable[Setting]) -> Iterator[Setting]:
    """Yield the settings that agree with the address, as far as it names one."""
    asked = {name: request.GET.get(key, "") for key, (name, _) in SETTING_FILTERS.items()}
    for one in settings:
        if all(wanted in ("", str(getattr(one, name))) for name, wanted in asked.items()):
            yield one


def nearest(request: HttpRequest, settings: Sequence[Setting]) -> Nearest:
    """Return the one that agrees with what the address says first, and with most of the rest."""
    left = list(settings)
    for name, (attribute, _) in SETTING_FILTERS.items():
        wanted = request.GET.get(name, "")
        agreeing = [one for one in left if wanted in ("", str(getattr(one, attribute)))]
        left = agreeing or left
    return Nearest(text=str(left[0]), query=setting_query(left[0]))


def setting_among(request: HttpRequest, settings: Iterable[Setting]) -> Setting | None:
    """Return the first that the address agrees with, or else the first."""
    own = list(settings)
    return next(_agreeing(request, own), next(iter(own), None))


def setting_query(setting: Setting) -> str:
    """Return the part of an address that asks for just this setting: what is timed comes first."""
    parts = [(name, getattr(setting, own)) for name, (own, _) in SETTING_FILTERS.items()]
    return urlencode(parts[:-1] if setting.is_timed else parts)


def setting_tail(setting: Setting | None, known: Sequence[Setting]) -> str:
    """Return what the address of a submission ends with to show a setting: nothing for the first of
    those known, with which boards begin."""
    return "" if setting is None or setting in known[:1] else f"?{setting_query(setting)}"


def choice_filter(
    request: HttpRequest, name: str, label: str, options: Iterable[tuple[str, str]], every: str
) -> Filter:
    """Return a control with an option for no restriction, called `every`."""
    pairs = list(options)
    value = choice(request, name, [value for value, _ in pairs])
    made = tuple(Option(value=value, text=text) for value, text in [("", every), *pairs])
    return Filter(name=name, label=label, value=value, options=made)


def count_phrase(rows: int, noun: str) -> str:
    return f"{rows} {noun}" if rows == 1 else f"{rows} {noun}s"


def harness_filter(request: HttpRequest) -> Filter:
    harnesses = [(value, value) for value in Harness.values]
    return choice_filter(request, "harness", "Harness", harnesses, "Any harness")


@dataclass(frozen=True, kw_only=True)
class Chip:
    """Describes a filter that is set, and the address without it."""

    label: str
    text: str
    url: str


def chips(controls: Iterable[Filter], path: str, query: dict[str, str]) -> list[Chip]:
    """Return a chip for each filter that is set; `query` is what the address says now."""
    made = []
    for control in controls:
        if control.name in query and control.value != control.default:
            rest = urlencode([pair for pair in query.items() if pair[0] != control.name])
            url = f"{path}?{rest}" if rest else path
            made.append(Chip(label=control.label, text=control.text, url=url))
    return made


def row_url(submission: int, setting: Setting) -> str:
    """Return the address of a submission's row of the matrix."""
    return f"{url('matrix-row', submission)}?{setting_query(setting)}"
