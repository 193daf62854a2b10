"""The kernels of one submission with their runs: last steps, progress by step, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from django.db.models import Exists, OuterRef, Q

from leaderboard import boards
from leaderboard.boards import Setting
from leaderboard.failures import failure_mode
from leaderboard.models import Kernel, Run, Submission
from leaderboard.models.choices import COUNTED_VERDICTS

# What the page and its figures tell of a run.
RUN_COLUMNS = (
    *("kernel", "status", "verdict", "cause", "problem_digest", "isolation", "mechanisms"),
    *("speedup", "speedup_low", "speedup_high", "kernel_us", "utilisation", "created_at"),
    *boards.SETTING_FIELDS,
)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A kernel with its newest run: that of the submission's setting, if it has one there."""

    kernel: Kernel
    run: Run | None
    steps: int = 1

    @property
    def verdict(self) -> str | None:
        return self.run.verdict if self.run else None

    @property
    def counts(self) -> bool:
        """Whether its run says something of the kernel and of the problem as it now stands."""
        run, digest = self.run, self.kernel.problem.digest
        is_told = run is not None and run.verdict in COUNTED_VERDICTS
        return bool(run and is_told and run.isolation != "none" and run.problem_digest == digest)

    @property
    def speedup(self) -> float | None:
        """None where the kernel is not right, however fast it was."""
        is_right = self.counts and self.verdict == "ok"
        return self.run.speedup if self.run and is_right else None


@dataclass(frozen=True, kw_only=True)
class Progress:
    """An agentic attempt: the best speedup up to each step, None before the first right kernel."""

    name: str
    best: tuple[float | None, ...]


def kernels_of(found: Submission, setting: Setting | None) -> list[Judged]:
    """Two queries: in the order of problem, attempt and step."""
    kernels = Kernel.objects.filter(submission=found).select_related("problem")
    runs = Run.objects.filter(kernel__submission=found).only(*RUN_COLUMNS)
    if setting:
        here = Run.objects.filter(kernel=OuterRef("kernel"), **asdict(setting))
        runs = runs.filter(Q(**asdict(setting)) | ~Exists(here))
    chosen: dict[int, Run] = {}
    for run in sorted(runs.order_by("-created_at", "-id"), key=lambda r: not is_in(r, setting)):
        chosen.setdefault(run.kernel_id, run)
    return [
        Judged(kernel=kernel, run=chosen.get(kernel.pk))
        for kernel in kernels.defer("problem__payload")
    ]


def is_in(run: Run, setting: Setting | None) -> bool:
    names = boards.SETTING_FIELDS
    return setting is not None and all(getattr(run, n) == getattr(setting, n) for n in names)


def attempts_of(kernels: Iterable[Judged]) -> dict[tuple[int, int], list[Judged]]:
    """The steps of each attempt at each problem."""
    groups: dict[tuple[int, int], list[Judged]] = {}
    for judged in kernels:
        place = (judged.kernel.problem_id, judged.kernel.attempt)
        groups.setdefault(place, []).append(judged)
    return groups


def last_steps(kernels: Iterable[Judged]) -> list[Judged]:
    """The kernel that counts of every attempt, with the number of its steps."""
    return [
        Judged(kernel=steps[-1].kernel, run=steps[-1].run, steps=len(steps))
        for steps in attempts_of(kernels).values()
    ]


def progress_of(kernels: Iterable[Judged]) -> list[Progress]:
    """Every attempt with more than one step; one that ended early keeps its best to the end."""
    groups = {place: s for place, s in attempts_of(kernels).items() if len(s) > 1}
    last = max((steps[-1].kernel.step for steps in groups.values()), default=0)
    made = []
    for (_, attempt), steps in groups.items():
        by_step = {judged.kernel.step: judged.speedup for judged in steps}
        name = str(steps[0].kernel.problem) + (f", attempt {attempt}" if attempt > 1 else "")
        best: list[float | None] = []
        for step in range(1, last + 1):
            known = [s for s in (by_step.get(step), best[-1] if best else None) if s is not None]
            best.append(max(known, default=None))
        made.append(Progress(name=name, best=tuple(best)))
    return made


def typical(progress: Sequence[Progress]) -> tuple[list[int], list[float | None]]:
    """By step: how many attempts have a right kernel, and the median of their best speedups."""
    steps = list(zip(*(one.best for one in progress), strict=True))
    known = [[speedup for speedup in step if speedup is not None] for step in steps]
    return [len(found) for found in known], [median(found) if found else None for found in known]


def modes_by_category(kernels: Iterable[Judged]) -> dict[str, Mapping[str, int]]:
    """How attempts ended, by the category of their problem."""
    groups: dict[str, Counter[str]] = {}
    for judged in kernels:
        run = judged.run
        mode = failure_mode(run.verdict, run.cause) if run and run.verdict else None
        if mode and judged.counts:
            groups.setdefault(judged.kernel.problem.category_title, Counter())[mode] += 1
    return dict(groups)
