"""Serves the page of a kernel's source; its address is the SHA-256 of the text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from django.http import Http404, HttpRequest

from leaderboard.delivery import cells
from leaderboard.delivery.pages import (
    Crumb,
    Page,
    Redirect,
    Table,
    choice,
    origin,
    public_page,
)
from leaderboard.kit.diff import Diff
from leaderboard.kit.languages import written
from leaderboard.kit.links import kernel_at, url
from leaderboard.metrics.verdicts import state, verdict_words
from leaderboard.models import Kernel, Moderation, Run, Source, Submission, Visibility
from leaderboard.models.rulings import told
from leaderboard.read_model.boards import SETTING_FIELDS, Setting, known_settings
from leaderboard.read_model.run_lines import RUN_COLUMNS, RUN_READS, run_line
from leaderboard.read_model.withholding import closed_to, disclosed, hushed, withheld_by_all
from leaderboard.run_pages.evidence import contents, evidence
from leaderboard.run_pages.kernel_source import against, choices, shown_source
from leaderboard.run_pages.lineage import Sibling, lineage
from leaderboard.run_pages.mechanisms import source_marks
from leaderboard.run_pages.reproduce import citation, reproduction

MOST_RUNS = 200
# The beginning of a digest.
SHORT = re.compile(r"[0-9a-f]{10,63}")
# What is read of them, as wide rows of the database take longer to name than to fetch.
USE_READS = (
    *("attempt", "step", "backend", "older_task", "source_id"),
    *("problem__number", "problem__slug"),
    *("source__digest", "source__found__names"),
    *("source__ruling__moderation", "source__ruling__reason"),
    *("problem__title", "problem__digest", "submission__model__name", "submission__harness"),
    *("submission__owner_id", "submission__team_id", "submission__visibility"),
    "submission__withholds_source",
    *("submission__moderation", "submission__is_practice", "submission__created_at"),
    *("problem__ranked_from", "problem__ranked_from_reason"),
)
ATTEMPT_COLUMNS = (
    *("attempt", "step", "verdict", "speedup", "backend", "digest", "run", "is_here", "stale"),
)


@public_page("diff", "run", "table")
def kernel(request: HttpRequest, digest: str) -> Page:
    uses, private = uses_of(request, digest)
    is_closed = bool(closed_to(request.user, uses))
    runs = runs_of(uses)
    shown = with_report(shown_run(runs, request.GET.get("run", "")), is_closed=is_closed)
    use = next(use for use in uses if shown is None or use.pk == shown.kernel_id)
    report = (shown and shown.report) or {}
    stored = shown.kernel.source if shown else Source.objects.get(pk=digest)
    ruling = told(shown.ruled() if shown else getattr(use.source, "ruling", None))
    siblings = lineage(use, {name: getattr(shown, name) for name in SETTING_FIELDS if shown})
    base, diff = against(request, use, text := None if is_closed else stored.text, siblings)
    about: dict[str, object] = {"source": text, "elsewhere": stored.elsewhere, "ruling": ruling}
    about |= {"withheld": is_closed, "size_bytes": stored.size_bytes}
    run = str(shown.pk) if shown and str(shown.pk) == request.GET.get("run") else ""
    address = kernel_at(digest, run)
    context = {
        **evidence(shown, report, text),
        **{"digest": digest, "kernel_url": address, "most_runs": MOST_RUNS, "ruling": ruling},
        "lines_url": "" if text is None else address,
        "uses": [_use(use) for use in uses],
        "runs": [_run_row(run) for run in runs],
        "source": shown_source(stored, text, source_marks(report)),
        "diff": {"name": base.name, "url": base.url, "diff": diff} if base else None,
        "compare": choices(request, siblings, run),
        "lineage": _lineage(siblings, digest, "" if private else _beside(digest, shown)),
        "reproduce": reproduction(shown or next(iter(runs), None), bundle_url(digest, run), text),
        "cite": citation(use, shown, origin(request) + address),
    }
    return Page(
        template="kernel.html",
        section="",
        context={**context, "contents": contents(context)},
        data=lambda: _data(uses, runs, about, siblings, diff),
        table=_table(choice(request, "table", ["attempts"]), siblings, runs),
        unlisted=use.submission.visibility != Visibility.PUBLIC,
        private=private or (base is not None and base.of is not None),
        varies=bool(withheld_by_all(uses)) or (base is not None and base.varies),
        of=base.of if base and not private else use.submission,
        crumbs=_crumbs(use),
    )


def uses_of(request: HttpRequest, digest: str) -> tuple[list[Kernel], bool]:
    """Return where a source was handed in, as far as this reader may know, and if that is private.

    An unlisted submission is not given away by a public one with the same source.
    """
    if SHORT.fullmatch(digest):  # as pages print it: the search leads to what the reader may see
        raise Redirect(f"q={digest}", url("search"))
    found = Kernel.objects.filter(source_id=digest).select_related(
        "problem", "submission__model", "source__found", "source__ruling"
    )
    uses = list(found.only(*USE_READS).order_by("submission_id", "attempt", "step"))
    if open_to_all := disclosed(uses):
        return open_to_all, False
    # The same steps for a source that nobody has: a reader must not tell the two apart.
    own = Submission.objects.reachable_by(request.user).filter(kernels__source=digest)
    seen = set(own.values_list("pk", flat=True))
    if not seen:
        raise Http404
    return [use for use in uses if use.submission_id in seen], True


def runs_of(uses: Sequence[Kernel]) -> list[Run]:
    """Return the newest runs first, without their reports."""
    known = {use.pk: use for use in uses}
    runs = list(Run.objects.filter(kernel__in=known).only(*RUN_READS)[:MOST_RUNS])
    for run in runs:
        run.kernel = known[run.kernel_id]
    return runs


def bundle_url(digest: str, run: str) -> str:
    """Return the address of the bundle of what a page shows whose address names a run, or none."""
    return f"{url('run', run) if run else url('kernel', digest)}/bundle.zip"


def shown_run(runs: Sequence[Run], wanted: str = "") -> Run | None:
    """Return the run wanted, or else the newest that says something of the kernel in the first of
    the boards' settings that it has one in, or else the newest that has ended."""
    ended = [run for run in runs if run.verdict]
    if named := [run for run in ended if str(run.pk) == wanted]:
        return named[0]
    telling = [run for run in ended if state(run.verdict) != "open"]
    newest: dict[Setting, Run] = {}
    for run in telling:
        newest.setdefault(Setting(**{name: getattr(run, name) for name in SETTING_FIELDS}), run)
    known = known_settings() if len(newest) > 1 else []
    on_board = next((newest[one] for one in known if one in newest), None)
    return on_board or next(iter([*telling, *ended]), None)


def with_report(run: Run | None, *, is_closed: bool = False) -> Run | None:
    """Return the same run with its report and its source; of one that is closed to a reader what
    they may read."""
    if run is None:
        return None
    found = Run.objects.select_related("kernel__source__ruling", "ruling").get(pk=run.pk)
    found.kernel.problem, found.kernel.submission = run.kernel.problem, run.kernel.submission
    return hushed(found) if is_closed else found


def _run_row(run: Run) -> dict[str, object]:
    speedup = cells.decimal_cell(run.speedup, 2) if run.is_timed else cells.not_timed()
    return {**run_line(run), "cells": speedup}


def _table(asked: str | None, siblings: Sequence[Sibling], runs: Sequence[Run]) -> Table:
    if asked:
        return Table.of(ATTEMPT_COLUMNS, map(vars, siblings))
    return Table.of(RUN_COLUMNS, map(run_line, runs))


def _beside(digest: str, shown: Run | None) -> str:
    """Return where this kernel stands beside another, in the setting of the run that is shown.
    Private ones are not to be put side by side."""
    tail = f"&run={shown.pk}" if shown else ""
    return f"{url('compare')}?kernels={{}},{digest}{tail}"


def _lineage(siblings: Sequence[Sibling], digest: str, beside: str) -> list[dict[str, object]]:
    """Return rows for siblings; none where a kernel stands alone."""
    return [
        {
            **vars(sibling),
            "verdict": verdict_words(sibling.verdict or "", is_timed=sibling.speedup is not None),
            "state": state(sibling.verdict),
            "url": kernel_at(sibling.digest, sibling.run),
            "same": sibling.digest == digest,
            "beside_url": beside.format(sibling.digest),
            "cells": cells.not_timed()
            if sibling.verdict == "ok" and sibling.speedup is None
            else cells.decimal_cell(sibling.speedup, 2),
        }
        for sibling in siblings
        if len(siblings) > 1
    ]


def _data(
    uses: Sequence[Kernel],
    runs: Sequence[Run],
    source: Mapping[str, object],
    siblings: Sequence[Sibling],
    diff: Diff | None,
) -> dict[str, object]:
    return {
        "digest": uses[0].source_id,
        "uses": [_record(use) for use in uses],
        **source,
        "attempts": [vars(sibling) for sibling in siblings],
        "diff": asdict(diff) if diff else None,
        "runs": [run_line(run) for run in runs],
    }


def _use(use: Kernel) -> dict[str, object]:
    moderation = use.submission.moderation
    return {
        **_record(use),
        "problem_url": use.problem.get_absolute_url(),
        "submission_url": use.submission.get_absolute_url(),
        "attempt_url": url(
            "submission-attempt", use.submission.address, use.problem_id, use.attempt
        ),
        "written": written(use.backend, use.languages),
        "moderation": "" if moderation == Moderation.ACCEPTED else moderation,
    }


def _record(use: Kernel) -> dict[str, object]:
    return {
        "problem": str(use.problem),
        "model": use.submission.model.name,
        "harness": use.submission.harness,
        "submission": use.submission_id,
        "attempt": use.attempt,
        "step": use.step,
        "backend": use.backend,
        "languages": use.languages,
    }


def _crumbs(use: Kernel) -> tuple[Crumb, ...]:
    return (
        Crumb(text="Leaderboard", url=url("board")),
        Crumb(text=use.problem.title, url=use.problem.get_absolute_url()),
        Crumb(text=f"Kernel {use.source_id[:10]}"),
    )
