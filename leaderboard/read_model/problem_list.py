"""Reads which problems a list shows, with what was judged of each in one setting."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db.models import F
from django.http import HttpRequest

from leaderboard.kit.json_types import JsonDict
from leaderboard.metrics.difficulty import DIFFICULTIES, Difficulty
from leaderboard.models import Hardware, LeaderboardRow, Problem, ProblemAggregate
from leaderboard.read_model import boards
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.filters import SETTING_FILTERS, Filter, choice_filter, setting_filters
from leaderboard.read_model.problem_aggregates import beside, place_of

# Where nothing has been judged yet, the sizes and ranks of the measured baselines are shown.
LIST_SIZE, LIST_RANKS = "standard", 4
YES_NO = {"scored": ("Scored", "not scored"), "solved": ("Solved", "unsolved")}
LIST_FILTERS = ("category", "source", "difficulty", *YES_NO, *SETTING_FILTERS)


class ProblemTotals(NamedTuple):
    """Holds what one problem came to in one setting, as a ProblemAggregate says."""

    submissions: int = 0
    solved: int = 0
    baseline_us: float | None = None
    best_speedup: float | None = None
    utilisation: float | None = None
    run_id: UUID | None = None
    run__bound_us: float | None = None

    @property
    def reference_utilisation(self) -> float | None:
        """Return the share of the bound that the reference reaches; None where it was not timed."""
        if not self.baseline_us or self.run__bound_us is None:
            return None
        return self.run__bound_us / self.baseline_us

    @property
    def headroom(self) -> float | None:
        """Return how many times as fast as the reference the hardware allows a kernel to be."""
        return 1 / self.reference_utilisation if self.reference_utilisation else None


class ProblemFigures(NamedTuple):
    """Holds more of one problem in one setting, for figures: its attempts by failure mode, the
    microseconds of the fastest kernel, and of the reference beside all of them."""

    submissions: int
    solved: int
    modes: Mapping[str, int]
    run__kernel_us: float | None
    baseline_us: float | None

    @property
    def kernel_us(self) -> float | None:
        return self.run__kernel_us if self.solved else None


@dataclass(frozen=True, kw_only=True)
class Listed:
    """Holds the problems that the address asks for, and the first setting in which anything is
    `timed`. `difficulties` are the same in every setting. `judged` is read when it is asked for."""

    every: tuple[Problem, ...]
    shown: tuple[Problem, ...]
    stood: Mapping[int, ProblemTotals]
    difficulties: Mapping[int, Difficulty]
    setting: Setting | None
    controls: tuple[Filter, ...]
    timed: Setting | None

    @property
    def size(self) -> str:
        return self.setting.size if self.setting else LIST_SIZE

    @property
    def ranks(self) -> int:
        return self.setting.world_size if self.setting else LIST_RANKS

    @functools.cached_property
    def hardware(self) -> str:
        """Return the name of the GPUs; empty where nothing was judged."""
        if self.setting is None:
            return ""
        return Hardware.objects.values_list("title", flat=True).get(pk=self.setting.hardware_id)

    @functools.cached_property
    def judged(self) -> Mapping[int, ProblemFigures]:
        return figures_by_problem(self.setting)

    @functools.cached_property
    def speedups(self) -> Mapping[int, Sequence[float]]:
        return speedups_by_problem(self.setting)

    def cost(self, problem: Problem) -> dict[str, float]:
        """Return the least that a rank must do, at the size and ranks of the setting."""
        return self._costs.get(problem.number, {})

    @functools.cached_property
    def _costs(self) -> dict[int, dict[str, float]]:
        every = {one.number: orjson.loads(one.costs or "{}") for one in self.every}
        size, ranks = self.size, str(self.ranks)
        return {number: costs.get(size, {}).get(ranks, {}) for number, costs in every.items()}


def listed(request: HttpRequest) -> Listed:
    """Read the list in two queries: settings, and problems with what they came to in the one that
    is shown."""
    known = boards.known_settings()
    setting, controls = setting_filters(request, known)
    every = _with_totals(setting, boards.checking(known))
    stood = {
        one.number: ProblemTotals(*(getattr(one, _here(name)) for name in ProblemTotals._fields))
        for one in every
        if one.scored and one.here_submissions is not None
    }
    difficulties = {
        one.number: Difficulty(one.check_solved or 0, one.check_tried or 0) for one in every
    }
    narrowing = list_filters(request, every)
    wanted = {control.name: control.value for control in narrowing if control.value}
    return Listed(
        every=every,
        shown=tuple(
            one
            for one in every
            if matches(one, stood.get(one.number), difficulties[one.number], wanted)
        ),
        stood=stood,
        difficulties=difficulties,
        setting=setting,
        controls=(*narrowing, *controls),
        timed=next(iter(sorted(filter(_is_timed, known), key=_is_old)), None),
    )


def _is_timed(setting: Setting) -> bool:
    return setting.is_timed


def _is_old(setting: Setting) -> bool:
    return not setting.is_todays


def _with_totals(setting: Setting | None, check: Setting | None) -> tuple[Any, ...]:
    """Return problems without their payload, `here_` what each came to in one setting, and `check_`
    how many models solved it in the other."""
    found = beside(Problem.objects.all(), place_of(setting))
    found = beside(found, place_of(check), "checked")
    here = {_here(name): F(f"here__{name}") for name in ProblemTotals._fields}
    solved, tried = F("checked__models_solved"), F("checked__models_tried")
    found = found.annotate(**here, check_solved=solved, check_tried=tried)
    return tuple(found.defer("payload"))


def _here(name: str) -> str:
    return f"here_{name.replace('__', '_')}"


def figures_by_problem(setting: Setting | None) -> dict[int, ProblemFigures]:
    """Return the figures' numbers by the problem's number; one query."""
    if setting is None:
        return {}
    own = ProblemAggregate.objects.filter(**asdict(setting), problem__scored=True)
    rows = own.order_by("problem_id").values_list("problem_id", *ProblemFigures._fields)
    return {number: ProblemFigures(*told) for number, *told in rows}


def speedups_by_problem(setting: Setting | None) -> dict[int, list[float]]:
    """Return the best speedup of each submission that solved it, by problem; one query."""
    found: dict[int, list[float]] = {}
    if setting is None:
        return found
    models = LeaderboardRow.objects.ranked().filter(submission__model__is_baseline=False)
    own = models.filter(**asdict(setting)).order_by("submission_id")
    for text in own.values_list("cells", flat=True):
        cells = orjson.loads(text)
        for number, speedup in zip(cells["problem"], cells["best_speedup"], strict=True):
            if speedup is not None:
                found.setdefault(number, []).append(speedup)
    return found


def list_filters(request: HttpRequest, every: Sequence[Problem]) -> list[Filter]:
    titles = {problem.category: problem.category_title for problem in every}
    sources = sorted({source_of(problem) for problem in every} - {""})
    named = [("category", "Category", list(titles.items()), "All categories")]
    named += [("source", "Source", [(source, source) for source in sources], "Any source")]
    bands = [(name, words) for name, (_, words) in DIFFICULTIES.items()]
    named += [("difficulty", "Difficulty", bands, "Any difficulty")]
    named += [
        (name, yes, [("yes", yes.lower()), ("no", no)], f"{yes} or not")
        for name, (yes, no) in YES_NO.items()
    ]
    return [choice_filter(request, *control) for control in named]


def matches(
    problem: Problem,
    stood: ProblemTotals | None,
    difficulty: Difficulty,
    wanted: Mapping[str, str],
) -> bool:
    solved = bool(stood and stood.solved)
    tests: dict[str, Callable[[str], bool]] = {
        "category": lambda value: problem.category == value,
        "source": lambda value: source_of(problem) == value,
        "difficulty": lambda value: problem.scored and difficulty.difficulty == value,
        "scored": lambda value: problem.scored == (value == "yes"),
        "solved": lambda value: solved == (value == "yes"),
    }
    return all(tests[name](value) for name, value in wanted.items())


def source_of(problem: Problem) -> str:
    """Return the project that its code is from; empty where there is none."""
    return problem.source or ""


def baselines_of(problem: Problem) -> list[JsonDict]:
    """Return times of the reference that were measured alone."""
    return list(orjson.loads(problem.baselines or "[]"))
