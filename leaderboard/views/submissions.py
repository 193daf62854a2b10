"""The page of a submission."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.db.models import Count, Subquery
from django.http import Http404, HttpRequest

from leaderboard import boards, cells, scores
from leaderboard.boards import Entry, Setting
from leaderboard.filters import said
from leaderboard.links import url
from leaderboard.models import Problem, Standing, Submission, Visibility
from leaderboard.models.choices import VERDICTS
from leaderboard.pages import Crumb, Page, Table, choice, public_page
from leaderboard.submission_kernels import Judged, kernels_of, last_steps
from leaderboard.verdicts import state, words
from leaderboard.views.figures.submissions import submission_figures
from leaderboard.views.problems import address_of

# A submission may hold a hundred attempts at each problem.
MOST_LISTED = 500
RUN_NUMBERS = ("speedup", "speedup_low", "speedup_high", "kernel_us", "utilisation")
KERNEL_COLUMNS = (
    *("number", "problem", "attempt", "step", "backend", "verdict"),
    *RUN_NUMBERS,
    *("mechanisms", "kernel", "run"),
)


@public_page("verdict")
def submission(request: HttpRequest, number: int) -> Page:
    found, scored = submission_called(number)
    wanted = choice(request, "verdict", [value for value, _ in VERDICTS])
    setting, entry = standing_of(found, scored)
    score = entry.score if entry else scores.score([], scored, k=found.k)
    kernels = kernels_of(found, setting)
    records = [kernel_record(j) for j in kernels if wanted in ("", j.verdict)]
    return Page(
        template="submission.html",
        section="",
        context={
            **submission_context(found),
            **score_context(setting, entry, score),
            **kernel_context(kernels, wanted),
            "figures": submission_figures(found, kernels),
        },
        data={
            "submission": found.pk,
            "model": found.model.name,
            "harness": found.harness,
            "cost_usd": found.cost_usd,
            "setting": setting and vars(setting),
            "score": asdict(score),
            "kernels": records,
        },
        table=Table(columns=KERNEL_COLUMNS, rows=[_row(record) for record in records]),
        private=found.visibility == Visibility.PRIVATE,
        unlisted=found.visibility != Visibility.PUBLIC,
        owner_id=found.owner_id,
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text=found.model.name, url=url("model", found.model.slug)),
            Crumb(text=f"Submission {found.pk}"),
        ),
    )


def submission_called(number: int) -> tuple[Submission, int]:
    """One query: the submission, and how many problems are scored."""
    counted = Problem.objects.scored().order_by().values("scored").annotate(n=Count("pk"))
    known = Submission.objects.select_related("model")
    found = known.annotate(scored=Subquery(counted.values("n"))).filter(pk=number).first()
    if found is None:
        raise Http404
    return found, getattr(found, "scored", None) or 0


def _row(record: dict[str, Any]) -> list[object]:
    return [*({**record, "mechanisms": " ".join(record["mechanisms"])}.values())]


def kernel_context(kernels: Sequence[Judged], wanted: str) -> dict[str, object]:
    final = last_steps(kernels)
    listed = [judged for judged in final if wanted in ("", judged.verdict)]
    return {
        "verdicts": verdict_links(final, wanted),
        "kernels": [_drawn(judged) for judged in listed[:MOST_LISTED]],
        "more": max(0, len(listed) - MOST_LISTED),
        "stepped": any(judged.steps > 1 for judged in final),
        "said": f"{said(len(listed), 'attempt')}, {said(len(kernels), 'kernel')} in all",
    }


def submission_context(found: Submission) -> dict[str, object]:
    is_ranked = (found.visibility, found.moderation) == ("public", "accepted")
    return {
        "submission": found,
        "model": found.model,
        "harness": found.harness,
        "trust": words(found.trust),
        "moderation": found.moderation.capitalize(),
        "reason": found.moderation_reason,
        "private": found.visibility != Visibility.PUBLIC,
        "notes": found.notes,
        "model_url": url("model", found.model.slug),
        "badge_url": url("submission-badge", found.pk) if is_ranked else "",
        "compare_url": f"{url('compare')}?a={found.pk}" if is_ranked else "",
    }


def score_context(
    setting: Setting | None, entry: Entry | None, score: scores.Score
) -> dict[str, object]:
    return {
        "score": score,
        "interval": score.pass_at_1_interval if setting else None,
        "utilisation": entry.utilisation if entry else None,
        "setting": setting,
    }


def standing_of(found: Submission, scored: int) -> tuple[Setting | None, Entry | None]:
    """Also of a submission that boards leave out."""
    own = Standing.objects.filter(submission=found)
    return next(iter(boards.each_in_its_setting(own, scored)), (None, None))


def verdict_links(final: Sequence[Judged], wanted: str) -> list[dict[str, object]]:
    """What attempts ended in, most first; each link shows those alone."""
    counts = Counter(judged.verdict for judged in final if judged.verdict)
    links: list[dict[str, object]] = [
        {"url": "?#kernels", "text": f"all {len(final)}", "current": not wanted}
    ]
    for verdict, count in counts.most_common():
        address, text = f"?verdict={verdict}#kernels", f"{words(verdict)} {count}"
        links.append({"url": address, "text": text, "current": verdict == wanted})
    return links


def kernel_record(judged: Judged) -> dict[str, Any]:
    kernel, run = judged.kernel, judged.run
    return {
        "number": kernel.problem_id,
        "problem": kernel.problem.title,
        "attempt": kernel.attempt,
        "step": kernel.step,
        "backend": kernel.backend,
        "verdict": (run.verdict or run.status) if run else None,
        **{name: getattr(run, name) if run else None for name in RUN_NUMBERS},
        "mechanisms": run.mechanisms if run else [],
        "kernel": kernel.source_id,
        "run": str(run.id) if run else None,
    }


def _drawn(judged: Judged) -> dict[str, Any]:
    record, run = kernel_record(judged), judged.run
    numbers = (
        cells.interval_cell(record["speedup"], record["speedup_low"], record["speedup_high"]),
        cells.time_cell(record["kernel_us"]),
        cells.share_cell(record["utilisation"]),
    )
    return {
        **record,
        "problem_url": address_of(judged.kernel.problem),
        "url": url("kernel", record["kernel"]),
        "run_url": run.get_absolute_url() if run else None,
        "state": state(judged.verdict),
        "verdict": words(record["verdict"] or ""),
        "mechanisms": [words(tag) for tag in record["mechanisms"]],
        "digest": record["kernel"],
        "attempt": cells.count_cell(record["attempt"]),
        "steps": cells.count_cell(judged.steps),
        "cells": cells.joined(numbers),
    }
