"""Which problems a list shows, with what was judged of each in one setting."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db.models import F, QuerySet
from django.http import HttpRequest

from leaderboard import boards
from leaderboard.boards import Setting
from leaderboard.cell_columns import AT
from leaderboard.filters import SETTING_FILTERS, Filter, choice_filter, setting_filters
from leaderboard.models import Hardware, Problem, ProblemStanding, Standing
from leaderboard.prepared import ask, given
from leaderboard.problem_standings import beside

# Where nothing has been judged yet, the sizes and ranks of the measured baselines are shown.
LIST_SIZE, LIST_RANKS = "standard", 4
YES_NO = {"scored": ("Scored", "not scored"), "solved": ("Solved", "unsolved")}
LIST_FILTERS = ("category", "source", *YES_NO, *SETTING_FILTERS)


class Stood(NamedTuple):
    """What one problem came to in one setting, as a ProblemStanding says."""

    submissions: int = 0
    solved: int = 0
    best_speedup: float | None = None
    utilisation: float | None = None
    run_id: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class Judged:
    """More of one problem in one setting, for figures. Times are those of the fastest kernel; there
    is a speedup for each submission that solved it. `modes` count attempts by FAILURE_MODES."""

    submissions: int
    speedups: tuple[float, ...]
    modes: tuple[int, ...]
    kernel_us: float | None
    baseline_us: float | None


@dataclass(frozen=True, kw_only=True)
class Listed:
    """What the address asks for. What was `judged` is read when it is asked for."""

    every: tuple[Problem, ...]
    shown: tuple[Problem, ...]
    stood: Mapping[int, Stood]
    setting: Setting | None
    controls: tuple[Filter, ...]

    @property
    def size(self) -> str:
        return self.setting.size if self.setting else LIST_SIZE

    @property
    def ranks(self) -> int:
        return self.setting.world_size if self.setting else LIST_RANKS

    @functools.cached_property
    def hardware(self) -> str:
        """What the GPUs are called; empty where nothing was judged."""
        if self.setting is None:
            return ""
        return Hardware.objects.values_list("title", flat=True).get(pk=self.setting.hardware_id)

    @functools.cached_property
    def judged(self) -> Mapping[int, Judged]:
        return judged_by_problem(self.setting)

    def cost(self, problem: Problem) -> dict[str, float]:
        """The least that a rank must do, at the size and ranks of the setting."""
        return self._costs.get(problem.number, {})

    @functools.cached_property
    def _costs(self) -> dict[int, dict[str, float]]:
        every = {one.number: orjson.loads(one.costs or "{}") for one in self.every}
        size, ranks = self.size, str(self.ranks)
        return {number: costs.get(size, {}).get(ranks, {}) for number, costs in every.items()}


def listed(request: HttpRequest) -> Listed:
    """Two queries: settings, and problems with what they came to in the one that is shown."""
    setting, controls = setting_filters(request, boards.known_settings())
    every = with_standings(setting)
    stood = {
        one.number: Stood(*(getattr(one, f"here_{name}") for name in Stood._fields))
        for one in every
        if one.scored and one.here_submissions is not None
    }
    narrowing = list_filters(request, every)
    wanted = {control.name: control.value for control in narrowing if control.value}
    return Listed(
        every=every,
        shown=tuple(p for p in every if matches(p, stood.get(p.number), wanted)),
        stood=stood,
        setting=setting,
        controls=(*narrowing, *controls),
    )


def with_standings(setting: Setting | None) -> tuple[Any, ...]:
    """Problems without their payload, and `here_` what each came to."""
    where = vars(setting) if setting else {"hardware_id": ""}
    return tuple(ask(_beside, tuple(where), **where))


def _beside(where: Sequence[str]) -> QuerySet[Problem]:
    found = beside(Problem.objects.all(), given(where))
    here = {f"here_{name}": F(f"here__{name}") for name in Stood._fields}
    return found.defer("payload").annotate(**here)


def judged_by_problem(setting: Setting | None) -> dict[int, Judged]:
    """Two queries. Of the reference judged as a submission only the time is taken."""
    if setting is None:
        return {}
    here = asdict(setting)
    own = Standing.objects.ranked().filter(**here, submission__model__is_baseline=False)
    speedups: dict[int, list[float]] = {}
    modes: dict[int, list[Sequence[int]]] = {}
    for text in own.order_by("submission_id").values_list("cells", flat=True):
        columns = orjson.loads(text)
        names = (columns[AT[name]] for name in ("problem", "best_speedup", "modes"))
        for number, speedup, ended in zip(*names, strict=True):
            speedups.setdefault(number, []).extend(() if speedup is None else (speedup,))
            modes.setdefault(number, []).append(ended)
    known = ("problem_id", "solved", "run__kernel_us", "run__baseline_us")
    rows = ProblemStanding.objects.filter(**here, problem__scored=True).order_by("problem_id")
    return {
        number: Judged(
            submissions=len(modes.get(number, ())),
            speedups=tuple(speedups.get(number, ())),
            modes=tuple(map(sum, zip(*modes.get(number, ()), strict=True))),
            kernel_us=kernel_us if solved else None,
            baseline_us=baseline_us,
        )
        for number, solved, kernel_us, baseline_us in rows.values_list(*known)
    }


def list_filters(request: HttpRequest, every: Sequence[Problem]) -> list[Filter]:
    titles = {problem.category: problem.category_title for problem in every}
    sources = sorted({source_of(problem) for problem in every} - {""})
    named = [("category", "Category", list(titles.items()), "All categories")]
    named += [("source", "Source", [(source, source) for source in sources], "Any source")]
    named += [
        (name, yes, [("yes", yes.lower()), ("no", no)], "Any") for name, (yes, no) in YES_NO.items()
    ]
    return [choice_filter(request, *control) for control in named]


def matches(problem: Problem, stood: Stood | None, wanted: Mapping[str, str]) -> bool:
    solved = bool(stood and stood.solved)
    tests: dict[str, Callable[[str], bool]] = {
        "category": lambda value: problem.category == value,
        "source": lambda value: source_of(problem) == value,
        "scored": lambda value: problem.scored == (value == "yes"),
        "solved": lambda value: solved == (value == "yes"),
    }
    return all(tests[name](value) for name, value in wanted.items())


def source_of(problem: Problem) -> str:
    """The project that its code is from."""
    return problem.source or ""


def baselines_of(problem: Problem) -> list[dict[str, Any]]:
    """Times of the reference that were measured alone."""
    return list(orjson.loads(problem.baselines or "[]"))
