"""Controls of a page whose state is its address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from django.http import HttpRequest

from leaderboard import boards
from leaderboard.boards import Setting
from leaderboard.models import Harness, Problem, PublishedResult
from leaderboard.models.choices import BACKENDS
from leaderboard.pages import choice

BOARD_PARAMETERS = (
    *("category", "harness", "backend"),
    *("hardware", "ranks", "size", "dtype", "profile", "judge"),
)
SETTING_FILTERS = {
    "hardware": ("hardware_id", "Hardware"),
    "ranks": ("world_size", "Ranks"),
    "size": ("size", "Size"),
    "dtype": ("dtype", "Type"),
    "profile": ("profile", "Inputs"),
    "judge": ("judge_version", "Judge"),
}


@dataclass(frozen=True, kw_only=True)
class Option:
    value: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Filter:
    name: str
    label: str
    value: str
    options: tuple[Option, ...]
    default: str = ""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The problems that shares are of."""

    category: str
    scored: int
    titles: dict[str, str]
    sizes: dict[str, int]


def setting_filters(
    request: HttpRequest, settings: Sequence[Setting]
) -> tuple[Setting | None, list[Filter]]:
    """The first setting that the address agrees with, and one control for each part that varies."""
    left = list(settings)
    for name, (attribute, _) in SETTING_FILTERS.items():
        allowed = sorted({str(getattr(setting, attribute)) for setting in settings})
        if wanted := choice(request, name, allowed):
            left = [setting for setting in left if str(getattr(setting, attribute)) == wanted]
    chosen = left[0] if left else None
    controls = []
    for name, (attribute, label) in SETTING_FILTERS.items():
        values = sorted({str(asdict(setting)[attribute]) for setting in settings})
        if len(values) < 2:
            continue
        default = str(getattr(settings[0], attribute))
        value = request.GET.get(name, "") or str(getattr(chosen, attribute, default))
        options = tuple(Option(value=v, text=v) for v in values)
        controls.append(
            Filter(name=name, label=label, value=value, options=options, default=default)
        )
    return chosen, controls


def choice_filter(
    request: HttpRequest, name: str, label: str, options: Iterable[tuple[str, str]], every: str
) -> Filter:
    """A control with an option for no restriction, called `every`."""
    pairs = list(options)
    value = choice(request, name, [value for value, _ in pairs])
    made = tuple(Option(value=value, text=text) for value, text in [("", every), *pairs])
    return Filter(name=name, label=label, value=value, options=made)


def scope(request: HttpRequest) -> Scope:
    """One query: how many problems are scored in each category, and in the one asked for."""
    titles: dict[str, str] = {}
    sizes: dict[str, int] = {}
    rows = Problem.objects.order_by("number").values_list("category", "category_title", "scored")
    for category, title, is_scored in rows:
        titles.setdefault(category, title)
        sizes[category] = sizes.get(category, 0) + is_scored
    chosen = choice(request, "category", list(titles))
    scored = sizes[chosen] if chosen else sum(sizes.values())
    return Scope(category=chosen, scored=scored, titles=titles, sizes=sizes)


def said(rows: int, noun: str) -> str:
    return f"{rows} {noun}" if rows == 1 else f"{rows} {noun}s"


@dataclass(frozen=True, kw_only=True)
class BoardQuery:
    """What a board, its figures and its twins show."""

    scope: Scope
    setting: Setting | None
    harness: str
    backend: str
    controls: tuple[Filter, ...]

    def judged(self) -> list[boards.Entry]:
        if self.setting is None:
            return []
        return boards.judged(
            self.setting,
            self.scope.scored,
            category=self.scope.category,
            harness=self.harness,
            backend=self.backend,
        )

    def claims(self) -> list[PublishedResult]:
        """Claims say nothing of backends, so a filter on backends leaves them out."""
        if self.backend:
            return []
        return boards.published(category=self.scope.category or None, harness=self.harness)


def board_query(request: HttpRequest) -> BoardQuery:
    """Two queries: the categories, and the settings that have results."""
    found = scope(request)
    setting, controls = setting_filters(request, boards.known_settings())
    titles = list(found.titles.items())
    chosen = (
        choice_filter(request, "category", "Category", titles, "All categories"),
        harness_filter(request),
        choice_filter(request, "backend", "Backend", BACKENDS, "Any backend"),
    )
    return BoardQuery(
        scope=found,
        setting=setting,
        harness=chosen[1].value,
        backend=chosen[2].value,
        controls=(*chosen, *controls),
    )


def harness_filter(request: HttpRequest) -> Filter:
    harnesses = [(value, value) for value in Harness.values]
    return choice_filter(request, "harness", "Harness", harnesses, "Any harness")
