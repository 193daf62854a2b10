"""Which problems a list shows, with what was judged of each in one setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from django.http import HttpRequest

from leaderboard import boards
from leaderboard.boards import Setting
from leaderboard.cell_columns import Modes, cells_with_modes
from leaderboard.filters import SETTING_FILTERS, Filter, choice_filter, setting_filters
from leaderboard.models import Problem, Run, Standing
from leaderboard.tallies import Cell

# Where nothing has been judged yet, the sizes and ranks of the measured baselines are shown.
LIST_SIZE, LIST_RANKS = "standard", 4
YES_NO = {"scored": ("Scored", "not scored"), "solved": ("Solved", "unsolved")}
Found = tuple[Cell, Modes]
LIST_FILTERS = ("category", "source", *YES_NO, *SETTING_FILTERS)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One problem in one setting. Times and utilisation are those of the fastest kernel; there is
    a speedup for each submission that solved it. `modes` count attempts by FAILURE_MODES."""

    hardware: str
    submissions: int = 0
    speedups: tuple[float, ...] = ()
    modes: tuple[int, ...] = ()
    utilisation: float | None = None
    kernel_us: float | None = None
    baseline_us: float | None = None

    @property
    def best_speedup(self) -> float | None:
        return max(self.speedups, default=None)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """What the address asks for."""

    every: tuple[Problem, ...]
    shown: tuple[Problem, ...]
    judged: Mapping[int, Judged]
    setting: Setting | None
    controls: tuple[Filter, ...]

    @property
    def size(self) -> str:
        return self.setting.size if self.setting else LIST_SIZE

    @property
    def ranks(self) -> int:
        return self.setting.world_size if self.setting else LIST_RANKS

    def cost(self, problem: Problem) -> dict[str, float]:
        """The least that a rank must do, at the size and ranks of the setting."""
        costs = problem.payload.get("costs", {})
        return dict(costs.get(self.size, {}).get(str(self.ranks), {}))


def listed(request: HttpRequest) -> Listed:
    """Four queries: problems, settings, and what was judged in the one that is shown."""
    every = tuple(Problem.objects.all())
    setting, controls = setting_filters(request, boards.known_settings())
    judged = judged_by_problem(setting)
    narrowing = list_filters(request, every)
    wanted = {control.name: control.value for control in narrowing if control.value}
    return Listed(
        every=every,
        shown=tuple(p for p in every if matches(p, judged.get(p.number), wanted)),
        judged=judged,
        setting=setting,
        controls=(*narrowing, *controls),
    )


def judged_by_problem(setting: Setting | None) -> dict[int, Judged]:
    """Two queries. Of the reference judged as a submission only the time is taken."""
    if setting is None:
        return {}
    own = Standing.objects.ranked().filter(**asdict(setting)).order_by("submission_id")
    rows = list(own.values_list("cells", "submission__model__is_baseline", "hardware__title"))
    groups: dict[int, list[Found]] = {}
    timed: dict[int, str] = {}
    for text, is_reference, _ in rows:
        for found in cells_with_modes(text):
            cell = found[0]
            of_models = groups.setdefault(cell.problem, [])
            if not is_reference:
                of_models.append(found)
            elif cell.correct:
                timed[cell.problem] = cell.run
    best_of = {number: fastest(cell for cell, _ in found) for number, found in groups.items()}
    timed |= {number: best.run for number, best in best_of.items() if best}
    times = times_of_runs(timed)
    return {
        number: _judged(found, best_of[number], times.get(number), rows[0][2])
        for number, found in groups.items()
    }


def times_of_runs(runs: Mapping[int, str]) -> dict[int, tuple[float | None, float | None]]:
    """Microseconds of kernel and reference, by problem."""
    found = Run.objects.filter(pk__in=list(runs.values()))
    times = {str(run): us for run, *us in found.values_list("id", "kernel_us", "baseline_us")}
    return {number: (times[run][0], times[run][1]) for number, run in runs.items() if run in times}


def fastest(cells: Iterable[Cell]) -> Cell | None:
    """The fastest correct attempt, if any is correct."""
    solved = [cell for cell in cells if cell.best_speedup is not None]
    return max(solved, key=lambda cell: cell.best_speedup or 0.0, default=None)


def _judged(
    found: Sequence[Found],
    best: Cell | None,
    times: tuple[float | None, float | None] | None,
    hardware: str,
) -> Judged:
    kernel_us, baseline_us = times or (None, None)
    return Judged(
        hardware=hardware,
        submissions=len(found),
        speedups=tuple(cell.best_speedup for cell, _ in found if cell.best_speedup is not None),
        modes=tuple(map(sum, zip(*(modes for _, modes in found), strict=True))),
        utilisation=best.utilisation if best else None,
        kernel_us=kernel_us if best else None,
        baseline_us=baseline_us,
    )


def list_filters(request: HttpRequest, every: Sequence[Problem]) -> list[Filter]:
    titles = {problem.category: problem.category_title for problem in every}
    sources = sorted({source_of(problem) for problem in every} - {""})
    named = [("category", "Category", list(titles.items()), "All categories")]
    named += [("source", "Source", [(source, source) for source in sources], "Any source")]
    named += [
        (name, yes, [("yes", yes.lower()), ("no", no)], "Any") for name, (yes, no) in YES_NO.items()
    ]
    return [choice_filter(request, *control) for control in named]


def matches(problem: Problem, judged: Judged | None, wanted: Mapping[str, str]) -> bool:
    solved = bool(judged and judged.speedups)
    tests: dict[str, Callable[[str], bool]] = {
        "category": lambda value: problem.category == value,
        "source": lambda value: source_of(problem) == value,
        "scored": lambda value: problem.scored == (value == "yes"),
        "solved": lambda value: solved == (value == "yes"),
    }
    return all(tests[name](value) for name, value in wanted.items())


def source_of(problem: Problem) -> str:
    """The project that its code is from."""
    return str(problem.payload.get("source", ""))
