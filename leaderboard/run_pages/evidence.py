"""Shows a finished run: the verdict, how fast it was, and everything that backs both."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.messages.hangs import Hang, hang_of
from leaderboard.delivery import cells
from leaderboard.kit.json_types import Report
from leaderboard.metrics.verdicts import (
    CAUSE_MEANINGS,
    in_todays_words,
    meaning,
    sentence,
    state,
    verdict_words,
    words,
)
from leaderboard.models import Run
from leaderboard.models.staleness import consequence, unranked
from leaderboard.run_pages.correctness import correctness
from leaderboard.run_pages.logs import log_rows
from leaderboard.run_pages.mechanisms import mechanism_rows
from leaderboard.run_pages.run_figures import burst_figures, margin_figure, timeline_figure
from leaderboard.run_pages.speed import rank_facts, speed
from problems.environment import digest

# What all ranks share where they are not timed.
SHARED_ON = {"cuda": "one GPU", "cpu": "one device"}
# Parts of the page in the order of reading: the name in the context, the anchor, the words.
PARTS = (
    ("speed", "speed", "Speed"),
    ("diff", "diff", "Differences"),
    ("source", "source", "Source"),
    ("correctness", "trials", "Trials"),
    ("bursts", "bursts", "Timed calls"),
    ("ranks", "ranks", "Ranks and GPUs"),
    ("timeline", "timeline", "Timeline"),
    ("mechanisms", "mechanisms", "Mechanisms"),
    ("logs", "logs", "Logs"),
    ("environment", "environment", "Environment"),
    ("lineage", "attempts", "Attempts"),
    ("runs", "runs", "Runs"),
    ("reproduce", "reproduce", "Reproduce"),
    ("cite", "cite", "Cite"),
)


def contents(context: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the links to what a page has; parts without content are not there."""
    return [{"anchor": anchor, "text": text} for name, anchor, text in PARTS if context.get(name)]


def run_facts(run: Run, report: Report | None) -> dict[str, object]:
    """Return a run in words; every text in it may come from a submission. Reads its problem. The
    judge is the one that made the report: the run's column may name one with the same checks."""
    return {
        "id": str(run.id),
        "url": run.get_absolute_url(),
        "status": run.status,
        "verdict": verdict_words(run.verdict or "", is_timed=run.is_timed),
        "meaning": meaning(run.verdict or "", is_timed=run.is_timed),
        "is_timed": run.is_timed,
        "shared_on": "" if run.is_timed else SHARED_ON[run.device],
        "state": state(run.verdict),
        "phase": run.phase,
        "message": sentence(run.message, run.verdict),
        "cause": words(run.cause) if run.cause else "",
        "cause_means": CAUSE_MEANINGS.get(run.cause or "", ""),
        "evidence": run.evidence and in_todays_words(run.evidence),
        "ranks": ", ".join(str(rank) for rank in run.ranks),
        "flags": run.flags,
        "hardware": run.hardware_id,
        "world_size": run.world_size,
        "size": run.size,
        "dtype": run.dtype,
        "profile": run.profile,
        "isolation": run.isolation,
        "judge_version": (report or {}).get("judge_version", run.judge_version),
        "finished": run.finished_at,
        "stale": consequence(run),
        "unranked": unranked(run),
    }


def evidence(run: Run | None, report: Report | None, source: str | None) -> dict[str, object]:
    """Return the context of `_verdict.html` and `_evidence.html`, but for `lines_url`: where
    lines of the source are, if they can be read here. A run may have no report; `source` is None
    where it cannot be read."""
    if run is None:
        return {"run": None, "speed": None}
    report = report or {}
    trials = report.get("trials", ())
    return {
        "run": run_facts(run, report),
        "speed": speed(report),
        "hang": _hang(run, source),
        "correctness": correctness(trials) if trials else None,
        "margins": margin_figure(run, trials),
        "bursts": burst_figures(run, report.get("timing")),
        "ranks": rank_facts(report),
        "timeline": timeline_figure(run, report.get("timelines", ())),
        "mechanisms": mechanism_rows(report),
        "environment": environment(report),
        "logs": log_rows(report),
    }


def _hang(run: Run, source: str | None) -> Hang | None:
    """Explain a hang on GPUs, also where the judge's reason does not name the kernel."""
    if run.verdict != "timeout" or run.device != "cuda":
        return None
    return hang_of(f"{run.evidence or ''} {run.message}", source)


def environment(report: Report) -> list[dict[str, object]]:
    """Group the facts: where, with which versions, under which settings, how long."""
    found = report.get("environment")
    if not found:
        return []
    seconds = report.get("phase_s", {})
    groups = {
        "Where": {"Host": found["host"], "Hardware": found["hardware"]},
        "Versions": {
            "environment": digest(found["versions"]),
            **dict(sorted(found["versions"].items())),
        },
        "Settings": dict(sorted(found.get("settings", {}).items())),
        "Time spent": {phase: f"{cells.significant(s)} s" for phase, s in seconds.items()},
    }
    return [
        {"title": title, "facts": [{"name": n, "value": v} for n, v in facts.items()]}
        for title, facts in groups.items()
        if facts
    ]
