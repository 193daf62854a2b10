"""Shows a submission."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from django.http import HttpRequest

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Page, Table, canonical_query, choice, public_page
from leaderboard.delivery.paging import PAGE, part_of
from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.languages import written
from leaderboard.kit.links import kernel_at, url
from leaderboard.metrics import scores, verdicts
from leaderboard.metrics.board_numbers import TAKEN
from leaderboard.metrics.verdicts import state, words
from leaderboard.model_pages.called import submission_called
from leaderboard.model_pages.chosen import judged_and_hidden
from leaderboard.model_pages.failure_reasons import told_kernels, why_failed
from leaderboard.model_pages.meeting import compare_url
from leaderboard.model_pages.submission_figures import submission_figures
from leaderboard.model_pages.submission_kernels import (
    UNCOUNTED,
    Ended,
    Failed,
    JudgedKernel,
    Standing,
    Tried,
    ended,
    every_kernel,
    failed_checks,
    kernels_of,
    last_steps,
    standings_of,
)
from leaderboard.models import Moderation, Run, Submission, Visibility
from leaderboard.models.choices import SHARED, VERDICTS
from leaderboard.models.waiting import without_host
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.filters import (
    SETTING_FILTERS,
    count_phrase,
    row_url,
    setting_among,
    setting_query,
)
from leaderboard.read_model.leaderboard_rows import Totals
from leaderboard.read_model.setting import tells_times
from leaderboard.read_model.steps import MADE

ROWS_A_PAGE = 100
PARAMETERS = ("verdict", *SETTING_FILTERS, PAGE)
RUN_NUMBERS = ("speedup", "speedup_low", "speedup_high", "kernel_us", "utilisation")
STANDING = (
    *("moderation", "moderation_reason", "withdrawn_at", "public_from", "published_at"),
    *("cost_usd", "link", "licence", "withholds_source"),
)
KERNEL_COLUMNS = (
    *("number", "problem", "attempt", "step", "backend", "verdict", "placement"),
    *("cause", "message", "evidence"),
    *RUN_NUMBERS,
    *("mechanisms", "kernel", "run", "counts", "why_not", "languages", *MADE),
)


@public_page(*PARAMETERS)
def submission(request: HttpRequest, address: str) -> Page:
    found, scored = submission_called(request, address)
    wanted = choice(request, "verdict", [*(value for value, _ in VERDICTS), UNCOUNTED])
    standings = standings_of(found)
    setting = setting_among(request, standings)
    totals, scored = standings[setting] if setting else (None, scored)
    score = score_in(totals, scored, found.k, is_timed=tells_times(setting))
    records = kernel_records(request, found, setting, wanted)
    return Page(
        template="submission.html",
        section="",
        context=lambda: {
            **submission_context(found, setting),
            **score_context(setting, totals, score),
            "settings": other_settings(standings, setting),
            **kernel_context(request, found, (setting, standings), wanted),
            "is_older": bool(setting and not setting.is_todays),
        },
        data=lambda: {
            **{"submission": found.pk, "model": found.model.name, "harness": found.harness},
            **{"practice": found.is_practice, **{name: getattr(found, name) for name in STANDING}},
            "team": found.team and found.team.slug,
            "manifest": found.manifest,
            "setting": setting and vars(setting),
            "score": score_record(score) if score.attempted else None,
            **_taken(totals),
            "median_speedup": totals and totals.numbers["median_speedup"],
            "kernels": list(records),
        },
        table=Table(columns=KERNEL_COLUMNS, rows=map(_row, records)),
        private=found.visibility == Visibility.PRIVATE,
        unlisted=found.visibility != Visibility.PUBLIC,
        varies=found.withholds_source,
        of=found,
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            *([Crumb(text=found.model.name, url=model_url(found))] if model_url(found) else []),
            Crumb(text=f"Submission {found.pk}"),
        ),
    )


def model_url(found: Submission) -> str:
    """Return the address of its model; empty unless the submission is public: its model may be
    known by nothing else."""
    is_public = found.visibility == Visibility.PUBLIC
    return url("model", found.model.slug) if is_public else ""


def score_in(totals: Totals | None, scored: int, k: int, *, is_timed: bool) -> scores.Score:
    sums = totals.sums if totals else scores.sums([])
    return scores.score_of(sums, scored, k=k, is_timed=is_timed)


def score_record(score: scores.Score) -> dict[str, object]:
    interval = score.pass_at_1_interval
    return {**score._asdict(), "pass_at_1_interval": interval and interval._asdict()}


def _row(record: JsonDict) -> list[object]:
    lists = {name: " ".join(record[name]) for name in ("mechanisms", "languages")}
    return [*{**record, **lists}.values()]


def _rows(
    request: HttpRequest,
    told: tuple[Submission, Setting | None, Mapping[Tried, Failed]],
    shown: Sequence[Ended],
    *,
    is_timed: bool,
) -> list[dict[str, object]]:
    """Return the attempts that a page shows, with the failed checks of these alone."""
    found, setting, failed = told
    steps = {one.pk: one.steps for one in shown}
    tried = {(one.problem, one.attempt) for one in shown}
    runs = [one.run for (*of, _), one in failed.items() if tuple(of) in tried]
    return [
        {
            **_drawn(one, steps[one.pk], is_timed=is_timed),
            "attempt_url": url("submission-attempt", found.address, one.problem, one.attempt),
        }
        for one in told_kernels(request.user, found, kernels_of(found, setting, steps, runs))
    ]


def kernel_context(
    request: HttpRequest,
    found: Submission,
    stands: tuple[Setting | None, Mapping[Setting, Standing]],
    wanted: str,
) -> dict[str, object]:
    """Return how every attempt ended, and the part of them that is shown, in two queries."""
    setting, standings = stands
    standing = standings[setting] if setting else None
    query = canonical_query(request, [*SETTING_FILTERS])
    failed = failed_checks(found, setting)
    kernels = ended(found, setting, failed)
    is_timed = tells_times(setting)
    final = last_steps(kernels)
    listed = [one for one in final if wanted in ("", one.group)]
    part = part_of(request, listed, ROWS_A_PAGE, PARAMETERS)
    waiting = sum(one.waits for one in kernels)
    told = (found, setting, failed)
    rows = _rows(request, told, part.rows, is_timed=is_timed)
    shown = f"{part.start + 1} to {part.start + len(part.rows)} of " if part.links else ""
    return {
        "waiting": waiting,
        "trust": verdicts.standing(found.trust, is_timed=is_timed, is_waiting=bool(waiting)),
        "no_host": no_hosts_of(found) if waiting else [],
        "verdicts": verdict_links(final, wanted, query, is_timed=is_timed),
        "kernels": rows,
        "failed": any(row["message"] for row in rows),
        "links": part.links,
        "uncounted": sum(one.group == UNCOUNTED for one in final),
        "stepped": any(one.steps > 1 for one in final),
        "said": f"{shown}{count_phrase(len(listed), 'attempt')}, "
        f"{count_phrase(len(kernels), 'kernel')} in all",
        "figures": submission_figures(found, kernels, query, standing, is_timed=is_timed),
    }


def submission_context(found: Submission, setting: Setting | None) -> dict[str, object]:
    is_shown = (found.visibility, found.moderation) == ("public", "accepted")
    is_ranked = is_shown and not found.is_practice
    return {
        "submission": found,
        "model": found.model,
        "team": found.team,
        "harness": found.harness,
        "moderation": found.moderation.capitalize(),
        "reason": found.moderation_reason,
        "is_withdrawn": found.moderation == Moderation.WITHDRAWN,
        "hidden": judged_and_hidden(found),
        "private": found.visibility != Visibility.PUBLIC,
        "notes": found.notes,
        "manifest": found.made_with,
        "model_url": model_url(found),
        "badge_url": url("submission-badge", found.pk) if is_ranked else "",
        "compare_url": compare_url([found.pk], setting) if is_ranked and setting else "",
        "matrix_url": row_url(found.pk, setting) if is_ranked and setting else "",
    }


def score_context(
    setting: Setting | None, totals: Totals | None, score: scores.Score
) -> dict[str, object]:
    most = totals and totals.dominant
    return {
        "score": score,
        "median": totals and totals.numbers["median_speedup"],
        "dominated": cells.dominance_text(*most) if most else "",
        "interval": score.pass_at_1_interval if setting else None,
        "utilisation": totals and totals.numbers["utilisation"],
        **_taken(totals),
        "setting": setting,
    }


def _taken(totals: Totals | None) -> dict[str, float | None]:
    """Return what all its attempts took; None unless each tells it."""
    return {name: totals.numbers[name] if totals else None for name in TAKEN}


def other_settings(known: Iterable[Setting], shown: Setting | None) -> list[dict[str, str]]:
    """Return links to where else it was judged."""
    return [{"text": str(one), "url": f"?{setting_query(one)}"} for one in known if one != shown]


def no_hosts_of(found: Submission) -> list[str]:
    """Return a sentence for each class of hardware that its runs wait for in vain."""
    queued = Run.objects.queued().filter(kernel__submission=found).order_by()
    return sorted(without_host(set(queued.values_list("hardware", flat=True))).values())


def verdict_links(
    final: Sequence[Ended], wanted: str, query: str, *, is_timed: bool
) -> list[dict[str, object]]:
    """Return links that show the attempts of one verdict alone, most frequent first, each with
    `query`."""
    counts = Counter(one.group for one in final if one.group)
    links: list[dict[str, object]] = [
        {"url": f"?{query}#kernels", "text": f"all {len(final)}", "current": not wanted}
    ]
    for verdict, count in counts.most_common():
        address = "&".join(filter(None, (f"?verdict={verdict}", query)))
        means = verdicts.verdict_words(verdict, is_timed=is_timed)
        text = f"{'does not count' if verdict == UNCOUNTED else means} {count}"
        links.append({"url": f"{address}#kernels", "text": text, "current": verdict == wanted})
    return links


def kernel_records(
    request: HttpRequest, found: Submission, setting: Setting | None, wanted: str
) -> Iterator[JsonDict]:
    """Yield the records of all kernels, or of those listed under the verdict wanted; they are read
    when the first is asked for."""
    for one in told_kernels(request.user, found, every_kernel(found, setting)):
        if wanted in ("", one.group):
            yield kernel_record(one)


def kernel_record(one: JudgedKernel) -> JsonDict:
    return {
        "number": one.problem,
        "problem": one.title,
        "attempt": one.attempt,
        "step": one.step,
        "backend": one.backend,
        "verdict": one.verdict or one.status,
        "placement": one.placement,
        **{"cause": one.cause, "message": one.message or None, "evidence": one.evidence},
        **{name: getattr(one, name) for name in RUN_NUMBERS},
        "mechanisms": one.mechanisms or [],
        "kernel": one.source,
        "run": str(one.run) if one.run else None,
        "counts": one.counts,
        "why_not": one.why_not or None,
        "languages": (one.languages or "").split(),
        **{name: getattr(one, name) for name in MADE},
        "ended": one.ended or None,
    }


def _drawn(one: JudgedKernel, steps: int, *, is_timed: bool) -> dict[str, object]:
    numbers = (
        cells.interval_cell(one.speedup, one.speedup_low, one.speedup_high),
        cells.time_cell(one.kernel_us),
        cells.share_cell(one.utilisation),
    )
    return {
        "number": one.problem,
        "problem": one.title,
        "problem_url": url("problem", one.problem, one.slug),
        "backend": written(one.backend, (one.languages or "").split()),
        "url": kernel_at(one.source, one.run),
        "run_url": url("run", one.run) if one.run else None,
        "state": state(one.verdict),
        "verdict": verdicts.verdict_words(
            one.verdict or one.status or "", is_timed=one.placement != SHARED
        ),
        "why_not": one.why_not,
        **why_failed(one),
        "mechanisms": [words(tag) for tag in one.mechanisms or ()],
        "digest": one.source,
        "attempt": one.attempt,
        "steps": cells.count_cell(steps),
        "cells": cells.joined(numbers if is_timed else ()),
    }
