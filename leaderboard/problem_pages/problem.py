"""Shows one problem: first how far anybody came, then the task."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from leaderboard.delivery import cells
from leaderboard.delivery.cards import Card, bars_of
from leaderboard.delivery.pages import Crumb, Page, canonical_query, choice, public_page
from leaderboard.delivery.redirects import moved_to
from leaderboard.kit.links import kernel_at, url, with_query
from leaderboard.kit.visible import visible
from leaderboard.metrics import floors
from leaderboard.metrics.floors import LIMITER_WORDS, Limits
from leaderboard.metrics.mechanisms import mechanism_name
from leaderboard.models import Problem, Run
from leaderboard.models.summaries import HARDENED
from leaderboard.problem_pages import problem_tables
from leaderboard.problem_pages.claimed_curves import frames_of
from leaderboard.problem_pages.problem_facts import (
    FloorTable,
    Task,
    Times,
    called,
    floor_records,
    known_context,
)
from leaderboard.problem_pages.problem_figures import problem_figures
from leaderboard.problem_pages.records import over_time_frames
from leaderboard.problem_pages.result_rows import attempt_rows, kernel_rows
from leaderboard.read_model import baselines, boards, problem_results, topologies
from leaderboard.read_model.baselines import Baselines, ReferenceTimes, gpu_of
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.filters import (
    SETTING_FILTERS,
    count_phrase,
    setting_filters,
    setting_query,
    setting_tail,
)
from leaderboard.read_model.problem_results import (
    SettingTotals,
    SubmissionRow,
    attempt_records,
    kernel_record,
    kernel_records,
)
from leaderboard.read_model.run_lines import command_of
from leaderboard.read_model.setting import SETTING_FIELDS, machine_in_words
from problems.topology import records

# Kernels, and attempts.
MOST_SHOWN = 25
NOTHING: Mapping[str, object] = {
    **dict.fromkeys(("best", "fastest", "limiter", "failure", "failure_share", "reference_us")),
    **dict.fromkeys(("solvers", "submissions", "correct", "made", "faster"), 0),
    **dict.fromkeys(("kernels", "attempts"), ()),
    **dict.fromkeys(("more_kernels", "more_attempts"), 0),
}


@public_page("attempts", "gpu", "table", *SETTING_FILTERS)
def problem(request: HttpRequest, number: int, slug: str) -> Page:
    known = called(slug)
    if known is None or known.problem.number != number:
        raise Http404
    found, text = known.problem, known.text
    every = choice(request, "attempts", ["all"]) == "all"
    facts = choice(request, "table", problem_tables.FACTS)
    stood = problem_results.totals_by_setting(found)
    settings = boards.known_settings()
    setting, controls = setting_filters(request, problem_results.in_view(settings, stood))
    here = next((one for one in stood if one.setting == setting), None)
    # One more than is shown: whether it is a tie with the last.
    rows = problem_results.rows_of(found, setting, None if every else MOST_SHOWN + 1)
    limits = limits_for(request, found, here)
    judged = baselines.reference_times(stood, setting)
    query = canonical_query(request, [*SETTING_FILTERS])
    return Page(
        template="problem.html",
        section="problems",
        context=lambda: {
            "filters": controls,
            "page_url": found.get_absolute_url(),
            "every_url": f"?{query}&attempts=all" if query else "?attempts=all",
            **results_context(here, rows, setting_tail(setting, settings), every),
            **in_any_setting(found, stood, settings, setting),
            **problem_figures(found, stood, setting, query, models_of(rows)),
            "published": frames_of(number, known.claimed),
            "over_time": over_time_frames(found, stood, setting, query, rows),
            **known_context(known, stood),
            "baselines": Baselines(text, judged, setting),
            "task": Task(payload=text, digest=found.digest, url=found.get_absolute_url()),
            "floors": floor_table(text, limits, _same_judge(stood, setting), query),
        },
        data=functools.partial(twin, found, setting, limits, judged, stood),
        table=problem_tables.facts_table(facts, found.payload, limits, judged)
        if facts
        else problem_tables.results_table(found, setting, every=every),
        card=lambda: card_of(found, problem_results.fastest_anywhere(found), rows),
        crumbs=(*crumbs(), Crumb(text=found.title)),
    )


def card_of(found: Problem, fastest: Run | None, rows: Sequence[SubmissionRow]) -> Card:
    """Return the picture for links: the fastest kernel anywhere, and those of the setting."""
    says = found.summary
    if fastest is not None and fastest.speedup is not None:
        setting = Setting(**{name: getattr(fastest, name) for name in SETTING_FIELDS})
        says = f"Fastest: {cells.ratio_text(fastest.speedup)} on {machine_in_words(setting)}"
        says += f", by {visible(fastest.kernel.submission.model.name)}"
    timed = [one for one in kernel_records(rows) if one["speedup"] is not None]
    shown = [
        (visible(one["model"]), one["speedup"], cells.ratio_text(one["speedup"])) for one in timed
    ]
    return Card(title=str(found), says=says, bars=bars_of(shown))


def models_of(rows: Sequence[SubmissionRow]) -> int:
    """Count the models and harnesses of these rows, the reference apart."""
    own = [row for row in rows if not row.is_reference]
    return len({(row.submission__model__name, row.submission__harness) for row in own})


def twin(
    found: Problem,
    setting: Setting | None,
    limits: Limits,
    judged: Sequence[ReferenceTimes],
    stood: Sequence[SettingTotals],
) -> dict[str, object]:
    """Return everything for the JSON twin, where the page shows the best of it."""
    rows = problem_tables.rows_of_models(found, setting)
    return {
        "problem": found.payload | {"number": found.number},
        "setting": setting and vars(setting),
        "kernels": kernel_records(rows),
        "attempts": attempt_records(rows),
        "judged_baselines": [one.record for one in judged],
        "hardware_topology": records(topologies.classes_of(stood), found.payload),
        "floors": {"gpu": limits.gpu, "rows": floor_records(found.payload, limits)},
    }


def in_any_setting(
    found: Problem,
    stood: Sequence[SettingTotals],
    known: Sequence[Setting],
    here: Setting | None,
) -> dict[str, object]:
    """Return the part of the page that is of every setting, and not of the one `here` alone."""
    return {
        "elsewhere": elsewhere(found, stood, here),
        "fastest_anywhere": fastest_context(problem_results.fastest_anywhere(found)),
        "difficulty": difficulty_of(stood, known) if found.scored else "",
    }


def elsewhere(
    found: Problem, stood: Sequence[SettingTotals], setting: Setting | None
) -> dict[str, object] | None:
    """Return the setting that says more, where no model solved the problem in this one: one in
    which a model did, else one in which a model tried if none did here."""
    here = next((one for one in stood if one.setting == setting), None)
    if here is not None and here.solved:
        return None
    tried = here is not None and here.submissions > 0
    others = [one for one in stood if (one.solved if tried else one.submissions)]
    if not others:
        return None
    best = max(others, key=lambda one: (one.profile == HARDENED, one.solved, one.submissions))
    return {
        "url": with_query(found.get_absolute_url(), setting_query(best.setting)),
        "where": best.setting.in_words(),
        "solved": best.solved,
        "submissions": best.submissions,
    }


def fastest_context(run: Run | None) -> dict[str, object] | None:
    """Describe the fastest kernel in any setting, which stands first on the page."""
    if run is None:
        return None
    setting = Setting(**{name: getattr(run, name) for name in SETTING_FIELDS})
    digest = run.kernel.source_id
    return {
        "run": run,
        "where": machine_in_words(setting),
        "size": run.size,
        "model": run.kernel.submission.model.name,
        "harness": run.kernel.submission.harness,
        "submission_url": run.kernel.submission.get_absolute_url(),
        "kernel_url": kernel_at(digest, run.pk),
        "bundle_url": url("run-bundle", run.pk),
        "withheld": run.kernel.submission.withholds_source,
        "command": command_of(run),
        "mechanisms": list(map(mechanism_name, run.mechanisms)),
    }


def difficulty_of(stood: Sequence[SettingTotals], known: Sequence[Setting]) -> str:
    """Return how hard the problem is, by the setting that says so of every problem."""
    check = boards.checking(known)
    return next((one.difficulty for one in stood if one.setting == check), "")


def crumbs() -> tuple[Crumb, ...]:
    """Return the breadcrumbs down to the list of problems."""
    board = Crumb(text="Leaderboard", url=url("board"))
    return board, Crumb(text="Problems", url=url("problems"))


def limits_for(request: HttpRequest, found: Problem, here: SettingTotals | None) -> Limits:
    """Return the limits of the GPU asked for, else of the setting's, else of the baseline's, else
    of the first."""
    known = {limits.slug: limits for limits in floors.datasheets().values()}
    if wanted := choice(request, "gpu", list(known)):
        return known[wanted]
    names = [here.hardware__title] if here and here.submissions else []
    names += [gpu_of(baseline) for baseline in found.payload["baselines"]]
    of_names = (floors.limits_of(name) for name in names)
    return next((limits for limits in of_names if limits), next(iter(known.values())))


def results_context(
    here: SettingTotals | None, rows: Sequence[SubmissionRow], tail: str, every: bool
) -> dict[str, object]:
    if here is None:
        return {"said": "", "is_timed": True, **NOTHING}
    models = [row for row in rows if not row.is_reference]
    most = None if every else MOST_SHOWN
    records = attempt_records(models, most)
    return {
        "said": f"{count_phrase(here.solved, 'kernel')} · {here.setting}",
        "is_timed": here.setting.is_timed,
        **standing(here, rows),
        "kernels": kernel_rows(rows, most, tail),
        "more_kernels": 0 if most is None else max(0, here.solved - most),
        "attempts": attempt_rows(records, models, tail, is_timed=here.setting.is_timed),
        "more_attempts": here.made - len(records),
    }


def standing(here: SettingTotals, rows: Sequence[SubmissionRow]) -> dict[str, object]:
    """Return the facts at the head of the page: how far anybody came, and what stops the rest."""
    solved = [row for row in rows if row.best_run_id is not None]
    best = next((kernel_record(row) for row in solved if not row.is_reference), None)
    fastest = best or next(map(kernel_record, solved), None)
    failure, failed = here.commonest_failure, here.made - here.correct
    return {
        "best": best,
        "fastest": fastest,
        "limiter": fastest and LIMITER_WORDS.get(fastest["limiter"] or ""),
        "solvers": here.solved,
        "submissions": here.submissions,
        "correct": here.correct,
        "made": here.made,
        "faster": here.faster,
        "reference_us": here.baseline_us,
        "reference_runs": here.baseline_runs,
        "failure": failure and failure[0],
        "failure_share": failure and failed and failure[1] / failed,
    }


def _same_judge(stood: Sequence[SettingTotals], here: Setting | None) -> list[SettingTotals]:
    """Return results of one version of the judge: times of two are never in one table."""
    return [one for one in stood if here and one.setting.judge_version == here.judge_version]


def floor_table(
    text: str, limits: Limits, stood: Sequence[SettingTotals], query: str
) -> FloorTable:
    references, kernels = measured(stood, limits)
    return FloorTable(
        payload=text,
        gpu=next(name for name, known in floors.datasheets().items() if known is limits),
        tail=f"&{query}" if query else "",
        references=tuple(references.items()),
        kernels=tuple(kernels.items()),
    )


def measured(stood: Sequence[SettingTotals], limits: Limits) -> tuple[Times, Times]:
    """Return the microseconds of the reference and of the best kernel of a model on this GPU in
    bfloat16, by size and ranks. The reference's are the medians in the settings of those
    kernels."""
    here = [
        (not one.solved, one.run__kernel_us, one)
        for one in stood
        if one.run__kernel_us is not None
        and one.dtype == floors.DTYPE
        and floors.limits_of(one.hardware__title) is limits
    ]
    references: dict[tuple[str, int], float] = {}
    kernels: dict[tuple[str, int], float] = {}
    for is_reference, kernel_us, one in sorted(here, key=lambda found: found[:2]):
        place = (one.size, one.world_size)
        if one.baseline_us is not None:
            references.setdefault(place, one.baseline_us)
        if not is_reference:
            kernels.setdefault(place, kernel_us)
    return references, kernels


@require_safe
def problem_page(
    request: HttpRequest, number: int, slug: str, form: str = "html"
) -> HttpResponseBase:
    """Serve the problem with this number, whatever the slug."""
    try:
        return problem(request, number=number, slug=slug, form=form)
    except Http404:
        found = Problem.objects.filter(number=number).first()
        if found is None or found.slug == slug:
            raise
        return moved_to(request, found.get_absolute_url() + ("" if form == "html" else f".{form}"))


@require_safe
def problem_number(request: HttpRequest, number: int) -> HttpResponseBase:
    """Redirect to the problem with this number; raise Http404 where there is none."""
    return moved_to(request, get_object_or_404(Problem, number=number).get_absolute_url())
