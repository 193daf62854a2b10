"""Shows one attempt: its steps with verdict, usage and differences, and what was said in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.http import Http404, HttpRequest

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Page, Table, canonical_query, choice, public_page
from leaderboard.delivery.paging import PAGE, PagePart, part_of
from leaderboard.kit.diff import compared
from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.languages import written
from leaderboard.kit.links import kernel_at, url
from leaderboard.kit.visible import visible
from leaderboard.metrics.verdicts import state, verdict_words, words
from leaderboard.model_pages.called import submission_called
from leaderboard.model_pages.submission import model_url
from leaderboard.model_pages.submission_kernels import standings_of
from leaderboard.models import Problem, Source, Submission, Transcript, Visibility
from leaderboard.models.choices import SHARED
from leaderboard.models.staleness import OLDER_TASK
from leaderboard.read_model.boards import SETTING_FIELDS, Setting
from leaderboard.read_model.filters import SETTING_FILTERS, count_phrase, setting_among
from leaderboard.read_model.steps import MADE, StepMade, steps_of, transcript_of
from leaderboard.read_model.transcripts import Message, parts_of
from leaderboard.read_model.withholding import is_told, open_to

MOST_STEPS = 200
DIFF = "diff"
PARAMETERS = (DIFF, *SETTING_FILTERS, PAGE)
RESULT = ("verdict", "cause", "speedup", "speedup_low", "speedup_high")
COLUMNS = ("step", "backend", "languages", "kernel", "older_task", "run", *RESULT, *MADE)
# A page with one message for every part: so many messages are shown at once.
ONE = 1


@public_page(*PARAMETERS)
def attempt(request: HttpRequest, address: str, problem: int, attempt: int) -> Page:
    found, _ = submission_called(request, address)
    of = Problem.objects.filter(pk=problem).defer("payload").first()
    steps = steps_of(found.pk, problem, attempt)
    if of is None or not steps:
        raise Http404
    setting = setting_among(request, standings_of(found))
    is_open = is_told(request.user, found)
    kept = transcript_of(found.pk, problem, attempt) if is_open else None
    part = part_of(request, parts_of(kept.text) if kept else [], ONE, PARAMETERS)
    messages = [message for group in part.rows for message in group]
    runs = [shown_run(step, setting) for step in steps]
    return Page(
        template="attempt.html",
        section="",
        context=lambda: {
            **_heading(found, of, attempt),
            "made": steps[-1].made,
            "said": count_phrase(len(steps), "step"),
            **_steps(request, steps, runs),
            "difference": difference(request, found, steps),
            **_transcript(kept, part, messages),
            "withheld": not is_open,
        },
        data=lambda: {
            **{"submission": found.pk, "problem": problem, "attempt": attempt},
            "ended": steps[-1].made["ended"] or None,
            "steps": [step.record for step in steps],
            "transcript": [vars(message) for message in messages] if kept else None,
            "withheld": not is_open,
        },
        table=Table.of(COLUMNS, map(_row, steps, runs)),
        private=found.visibility == Visibility.PRIVATE,
        unlisted=found.visibility != Visibility.PUBLIC,
        varies=found.withholds_source,
        of=found,
        crumbs=_crumbs(found, of, attempt),
    )


def _crumbs(found: Submission, of: Problem, attempt: int) -> tuple[Crumb, ...]:
    model = model_url(found)
    return (
        Crumb(text="Leaderboard", url=url("board")),
        *([Crumb(text=found.model.name, url=model)] if model else []),
        Crumb(text=f"Submission {found.pk}", url=found.get_absolute_url()),
        Crumb(text=f"{of.title}, attempt {attempt}"),
    )


def _heading(found: Submission, of: Problem, attempt: int) -> dict[str, object]:
    return {
        "submission": found,
        "model": found.model.name,
        "problem": of,
        "attempt": attempt,
        "private": found.visibility != Visibility.PUBLIC,
        "manifest": found.made_with,
    }


def shown_run(step: StepMade, setting: Setting | None) -> JsonDict | None:
    """Return the newest run of a step in the setting, of those that have a verdict if any has; one
    of another setting where it has none there."""
    here = [run for run in step.runs if setting and _is_in(run, setting)]
    own = here or [run for run in step.runs if setting and _checks(run, setting)] or step.runs
    return next((run for run in own if run["verdict"]), next(iter(own), None))


def _checks(run: Mapping[str, object], setting: Setting) -> bool:
    """Return True for a check of what a timed setting times: its failure counts there."""
    alike = all(run[name] == getattr(setting, name) for name in ("size", "dtype", "profile"))
    return alike and setting.is_timed and run["placement"] == SHARED


def _is_in(run: Mapping[str, object], setting: Setting) -> bool:
    return all(run[name] == getattr(setting, name) for name in SETTING_FIELDS)


def _row(step: StepMade, run: JsonDict | None) -> JsonDict:
    return {
        **vars(step),
        "older_task": step.older_task or None,
        "languages": " ".join(step.languages),
        "run": run and str(run["id"]),
        **{name: run and run[name] for name in RESULT},
        **step.made,
    }


def _steps(
    request: HttpRequest, steps: Sequence[StepMade], runs: Sequence[JsonDict | None]
) -> dict[str, object]:
    """Return the last steps, each with what leads to its kernel, run and differences."""
    kept = canonical_query(request, [*SETTING_FILTERS])
    shown = list(zip(steps, runs, strict=True))[-MOST_STEPS:]
    return {
        "steps": [_drawn(step, run, kept, is_first=step is steps[0]) for step, run in shown],
        "left_out": len(steps) - len(shown),
        "uncounted": steps[-1].made["answers_without_usage"],
    }


def _drawn(step: StepMade, run: JsonDict | None, kept: str, *, is_first: bool) -> dict[str, object]:
    result = run or {}
    verdict = result.get("verdict") or result.get("status")
    numbers = (
        cells.ratio_cell(result.get("speedup")),
        cells.count_cell(step.made["output_tokens"]),
        cells.decimal_cell(step.made["cost_usd"], 2),
        cells.count_cell(step.made["wall_s"]),
        cells.count_cell(step.made["judge_runs"]),
    )
    query = "&".join(filter(None, (f"{DIFF}={step.step}", kept)))
    return {
        "step": step.step,
        "state": state(result.get("verdict")),
        "verdict": verdict_words(verdict or "", is_timed=result.get("placement") != SHARED),
        "run_url": url("run", result["id"]) if result else "",
        "cause": words(result.get("cause") or ""),
        "why_not": f"{OLDER_TASK}, {step.older_task}" if step.older_task else "",
        "cells": cells.joined(numbers),
        "written": written(step.backend, step.languages),
        "kernel": step.kernel,
        "url": kernel_at(step.kernel, result.get("id")),
        "diff_url": "" if is_first else f"?{query}#{DIFF}",
    }


def difference(
    request: HttpRequest, found: Submission, steps: Sequence[StepMade]
) -> dict[str, object] | None:
    """Return the lines in which the step asked for, or else the last, differs from the one before;
    None where there is none before. Without a `diff` where a source is not held, or withheld."""
    numbers = [str(step.step) for step in steps[1:]]
    if not numbers:
        return None
    at = 1 + numbers.index(choice(request, DIFF, numbers, numbers[-1]))
    old, new = steps[at - 1], steps[at]
    both = {old.kernel, new.kernel}
    readable = open_to(request.user, both) if found.withholds_source else both
    texts = {one.pk: one.text for one in Source.objects.filter(pk__in=readable)}
    before, after = texts.get(old.kernel), texts.get(new.kernel)
    is_held = before is not None and after is not None
    return {
        "old": old.step,
        "new": new.step,
        "withheld": readable != both,
        "diff": compared(visible(before or ""), visible(after or "")) if is_held else None,
        "url": kernel_at(old.kernel, None),
        "to_url": kernel_at(new.kernel, None),
    }


def _transcript(
    kept: Transcript | None, part: PagePart[list[Message]], messages: Sequence[Message]
) -> dict[str, object]:
    return {
        "is_kept": kept is not None,
        "size_bytes": kept.size_bytes if kept else 0,
        "messages": messages,
        "links": part.links,
        "part": part.start + 1,
    }
