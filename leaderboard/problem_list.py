"""Which problems a list shows, with what was judged of each in one setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.http import HttpRequest

from leaderboard import boards
from leaderboard.boards import Setting
from leaderboard.filters import SETTING_FILTERS, Filter, choice_filter, setting_filters
from leaderboard.models import Problem, Summary

# Where nothing has been judged yet, the sizes and ranks of the measured baselines are shown.
LIST_SIZE, LIST_RANKS = "standard", 4
YES_NO = {"scored": ("Scored", "not scored"), "solved": ("Solved", "unsolved")}
LIST_FILTERS = ("category", "source", *YES_NO, *SETTING_FILTERS)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One problem in one setting. Times and utilisation are those of the fastest kernel; there is
    a speedup for each submission that solved it."""

    hardware: str
    submissions: int = 0
    speedups: tuple[float, ...] = ()
    utilisation: float | None = None
    kernel_us: float | None = None
    baseline_us: float | None = None
    entries: tuple[Mapping[str, Any], ...] = ()

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
    """Three queries: problems, settings, and what was judged in the one that is shown."""
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
    if setting is None:
        return {}
    rows = Summary.objects.ranked().filter(**asdict(setting)).order_by("problem_id")
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows.values(
        "problem_id", "hardware__title", "best_speedup", "attempts", "best_run__utilisation",
        "best_run__kernel_us", "best_run__baseline_us",
    ):  # fmt: skip
        groups.setdefault(row["problem_id"], []).append(row)
    return {number: _judged(found) for number, found in groups.items()}


def _judged(rows: Sequence[Mapping[str, Any]]) -> Judged:
    solved = [row for row in rows if row["best_speedup"] is not None]
    best = max(solved, key=lambda row: row["best_speedup"], default=None)
    numbers = ("utilisation", "kernel_us", "baseline_us")
    return Judged(
        hardware=rows[0]["hardware__title"],
        submissions=len(rows),
        speedups=tuple(row["best_speedup"] for row in solved),
        entries=tuple(entry for row in rows for entry in row["attempts"]),
        **({name: best[f"best_run__{name}"] for name in numbers} if best else {}),
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
