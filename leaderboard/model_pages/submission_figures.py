"""Draws the figures of one submission."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Table
from leaderboard.figures.charts import boards as board_charts
from leaderboard.figures.charts import submissions as charts
from leaderboard.figures.charts.boards import ModeCounts
from leaderboard.figures.charts.drawing import Spec
from leaderboard.figures.charts.submissions import Speedup, Trail
from leaderboard.figures.findings import endings_found, said
from leaderboard.figures.frame import Drawn, Figure, figure, framed
from leaderboard.figures.tables import mode_table
from leaderboard.kit.links import url
from leaderboard.kit.submission_addresses import number_and_key
from leaderboard.model_pages.called import refuse_guesses
from leaderboard.model_pages.submission_kernels import (
    Ended,
    JudgedKernel,
    Standing,
    every_kernel,
    last_steps,
    standings_of,
)
from leaderboard.model_pages.submission_progress import (
    StepShare,
    modes_by_category,
    progress_of,
    shares_by_step,
    typical,
)
from leaderboard.models import Submission, Visibility
from leaderboard.models.choices import COUNTED_VERDICTS
from leaderboard.read_model.filters import SETTING_FILTERS, setting_among
from leaderboard.read_model.leaderboard_rows import Totals

PARAMETERS = ("submission", *SETTING_FILTERS)


class Asked(NamedTuple):
    """Holds a submission with its kernels in a setting, the totals of these, and a share solved
    after each step."""

    submission: Submission
    kernels: list[JudgedKernel]
    totals: Totals | None
    shares: list[StepShare]


def asked(request: HttpRequest) -> Asked:
    """Find the submission of `?submission=<number>`, in the setting asked for. Raises Http404
    for an unknown number."""
    submission = submission_asked(request)
    standings = standings_of(submission)
    setting = setting_among(request, standings)
    totals, scored = standings[setting] if setting else (None, 0)
    kernels = every_kernel(submission, setting)
    return Asked(submission, kernels, totals, shares_by_step(kernels, scored))


def submission_asked(request: HttpRequest) -> Submission:
    """Return the submission of `?submission=<address>`. Raises Http404 for an unknown number, and
    for one that this reader is not to know of."""
    own, address = Submission.objects.select_related("model"), request.GET.get("submission", "")
    submission = get_object_or_404(own, pk=number_and_key(address)[0])
    refuse_guesses(request, submission, address)
    return submission


@figure(
    "progress",
    "Progress by step",
    "The best speedup so far of every attempt, and the median of those solved by then.",
    *PARAMETERS,
    tall=True,
)
def progress(request: HttpRequest) -> Drawn:
    found = asked(request)
    trails = trails_of(found.kernels)
    return _drawn(progress, found, charts.progress(trails), trail_table(trails))


@figure(
    "by-step",
    "What more steps bring",
    "Share of all problems that one attempt solves, and solves fast, had it been stopped after a"
    " step.",
    *PARAMETERS,
)
def by_step(request: HttpRequest) -> Drawn:
    found = asked(request)
    right, fast = [one.right for one in found.shares], [one.fast for one in found.shares]
    rows = [[f"step {n}", 100 * one.right, 100 * one.fast] for n, one in enumerate(found.shares, 1)]
    table = Table(columns=("Stopped after", "pass@1, %", "fast₁@1, %"), rows=rows)
    return _drawn(by_step, found, charts.by_step(right, fast), table)


@figure(
    "submission-failures",
    "How attempts end",
    "Share of attempts by outcome, by category.",
    *PARAMETERS,
    tall=True,
)
def failures(request: HttpRequest) -> Drawn:
    found = asked(request)
    counts = mode_counts(found.kernels)
    return _drawn(failures, found, board_charts.failure_modes(counts), mode_table(counts))


@figure(
    "speedups",
    "Speedup of every correct kernel",
    "Bars are 95 % intervals.",
    *PARAMETERS,
    tall=True,
)
def speedups(request: HttpRequest) -> Drawn:
    found = asked(request)
    solved = speedups_of(found.kernels)
    return _drawn(speedups, found, charts.speedups(solved), speedup_table(solved))


def _drawn(one: Figure, asked_for: Asked, spec: Spec, table: Table) -> Drawn:
    found = asked_for.submission
    model = found.model
    is_public = found.visibility == Visibility.PUBLIC
    return Drawn(
        spec=spec,
        table=table,
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text=model.name, url=url("model", model.slug) if is_public else None),
            Crumb(text=f"Submission {found.pk}", url=found.get_absolute_url()),
        ),
        submission=found,
        title=title_of(one, asked_for.totals, asked_for.shares),
    )


def title_of(one: Figure, totals: Totals | None, shares: Sequence[StepShare]) -> str:
    """Return the title of one of these figures with what it shows: in a setting with these totals,
    with these shares solved after each step."""
    if one is failures and totals:
        return endings_found(one.title, [totals.modes])
    if one is speedups and totals and (median := totals.numbers.get("median_speedup")):
        return said(one.title, f"{cells.ratio_text(median)} in the median over problems")
    if one not in (progress, by_step) or not shares:
        return one.title
    first, last = (cells.share_text(shares[at].right) for at in (0, -1))
    return said(one.title, f"{first} of problems solved after one step, {last} after {len(shares)}")


def submission_figures(
    found: Submission,
    kernels: Sequence[Ended],
    query: str,
    standing: Standing | None,
    *,
    is_timed: bool,
) -> list[dict[str, object]]:
    """Return the frames of figures that have something to show, unless a problem has changed since.
    `query` asks for a setting, with its standing, in which kernels are timed, or only checked."""
    verdicts = {one.verdict for one in kernels if one.counts}
    has_times = is_timed and "ok" in verdicts
    has_steps = any(one.step > 1 for one in kernels)
    shown = [progress] if has_times and has_steps else []
    shown += [by_step] if has_steps and "ok" in verdicts else []
    shown += [failures] if not verdicts.isdisjoint(COUNTED_VERDICTS) else []
    shown += [speedups] if has_times else []
    address = "&".join(filter(None, (f"submission={found.address}", query)))
    totals, scored = standing or (None, 0)
    shares = shares_by_step(kernels, scored) if has_steps else []
    return [framed(one, address, title=title_of(one, totals, shares)) for one in shown]


def speedup_table(found: Sequence[Speedup]) -> Table:
    columns = ("Problem", "Speedup, ×", "95 % low", "95 % high")
    return Table(columns=columns, rows=[[s.name, s.speedup, s.low, s.high] for s in found])


def speedups_of(kernels: Iterable[JudgedKernel]) -> list[Speedup]:
    """Return the speedup of every correct kernel that counts: the last step of each attempt."""
    return [
        Speedup(
            name=one.title,
            speedup=one.speedup,
            low=one.speedup_low,
            high=one.speedup_high,
            used=one.utilisation,
            link=url("run", one.run) if one.run else "",
        )
        for one in last_steps(kernels)
        if one.right_speedup and one.speedup and one.speedup_low and one.speedup_high
    ]


def mode_counts(kernels: Iterable[JudgedKernel]) -> list[ModeCounts]:
    modes = modes_by_category(last_steps(kernels))
    return [ModeCounts(name=name, counts=counts) for name, counts in modes.items()]


def trails_of(kernels: Iterable[JudgedKernel]) -> list[Trail]:
    """Return the median by step first, then every attempt with several steps; nothing without such
    attempts."""
    progress = progress_of(kernels)
    if not progress:
        return []
    _, medians = typical(progress)
    middle = Trail(name="median of what is solved by then", best=tuple(medians), typical=True)
    return [middle, *(Trail(name=one.name, best=one.best) for one in progress)]


def trail_table(trails: Sequence[Trail]) -> Table:
    steps = len(trails[0].best) if trails else 0
    solved = [sum(t.best[i] is not None for t in trails if not t.typical) for i in range(steps)]
    rows: list[list[object]] = [["solved", *solved]] if trails else []
    rows += [[trail.name, *trail.best] for trail in trails]
    return Table(columns=("Problem, ×", *(f"step {i + 1}" for i in range(steps))), rows=rows)
