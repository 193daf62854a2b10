"""Packs a run as `pkb-attempts/1`: the same bytes whenever the same was answered and found.

An attempt is packed by walking through its events once more, so what is packed is what today's code
makes of them; where it would do something else than was recorded, packing says so and stops.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from evaluator.client.attempts import FORMAT, transcript
from evaluator.client.packing import compressed, packed
from evaluator.generate.attempt_loop import Course, Ended, Step, Totals
from evaluator.generate.exchange import plain
from evaluator.generate.journal import Diverged, Exhausted, Journal, read_events
from evaluator.generate.plan import Plan, RunFiles, Target, attempts, load_prompt, task_of
from evaluator.generate.running import play
from evaluator.generate.tools import tools_of
from evaluator.messages.codec import encode

_PROVIDERS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google",
    "api.deepseek.com": "deepseek",
    "api.mistral.ai": "mistral",
    "api.x.ai": "xai",
    "api.groq.com": "groq",
    "api.together.xyz": "together",
    "openrouter.ai": "openrouter",
}


def archive(place: RunFiles, plan: Plan) -> bytes:
    """Return the archive of every attempt that has an answer. Raises Diverged."""
    ended = sorted(_replays(place, plan), key=lambda one: (one[1].task.number, one[1].task.attempt))
    files: dict[str, bytes] = {"manifest.json": _json(_manifest(plan))}
    rows: list[dict[str, Any]] = []
    for target, one in ended:
        prompt = one.task.prompt.rendered(tools_of(plan))
        digest = hashlib.sha256(prompt.encode()).hexdigest()
        files[f"prompts/{digest}.md"] = prompt.encode()
        for number, step in enumerate(_steps(one), start=1):
            files[_kernel_path(plan, target, one, number)] = step.source.encode()
        said = transcript(list(map(plain, one.messages)), str)  # events are scrubbed
        files[f"transcripts/{target.number}/{one.task.attempt}.jsonl.gz"] = compressed(said)
        rows += _rows(plan, one, digest)
    lines = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    files["attempts.jsonl"] = lines.encode()
    return packed(files)


def replayed(place: RunFiles, plan: Plan, target: Target, attempt: int) -> Ended | None:
    """Return what an attempt's events make; None where it has no answer. Raises Diverged."""
    journal = Journal(read_events(place.events(target, attempt)))
    course = Course(
        task=task_of(plan, target, attempt, load_prompt(place, target)), journal=journal
    )
    try:
        reason = play(course, plan)
    except Exhausted:
        reason = journal.stop
    if journal.end is not None and journal.end["reason"] != reason:
        raise Diverged(f"an attempt ended by {journal.end['reason']} now ends by {reason}")
    # A prompt that the model cannot read whole has no answer, and counts nowhere.
    has_answer = course.totals.answers or reason in ("refused", "too_long")
    return course.ended(reason) if has_answer else None


def _replays(place: RunFiles, plan: Plan) -> Iterator[tuple[Target, Ended]]:
    for target, attempt in attempts(plan):
        ended = replayed(place, plan, target, attempt)
        if ended is not None:
            yield target, ended


def _manifest(plan: Plan) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "model": plan.model,
        "provider": plan.provider or provider_of(plan.base_url),
        "harness": plan.harness,
        "harness_version": plan.software_version,
        "recipe": plan.recipe,
        "prompt_sha256": plan.recipe_sha256,
        "sampling": plain(plan.sampling),
        "backend": str(plan.backend),
        "hardware": plan.hardware,
        "world_size": plan.world_size,
        "size": plan.size,
        "dtype": str(plan.dtype),
        "judge": plan.judge,
        "placement": str(plan.placement),
        "budget": encode(plan.budget),
        "prices": encode(plan.price),
        "prices_date": plan.price.date if plan.price else None,
    }


def provider_of(base_url: str | None) -> str:
    """Return who serves a public API; of any other server no more than that it is the user's."""
    host = urlsplit(base_url).hostname if base_url else "api.openai.com"
    return _PROVIDERS.get(host or "", "self-hosted")


def _steps(one: Ended) -> tuple[Step, ...]:
    """Return an attempt's steps: an empty one where it made no kernel, as it failed and counts."""
    return one.steps or (Step(source="", totals=one.totals),)


def _rows(plan: Plan, one: Ended, prompt_sha256: str) -> Iterator[dict[str, Any]]:
    """Yield a line a step, each with what the attempt had used by then; the last with its end, and
    all that it used."""
    own = {"problem": one.task.number, "attempt": one.task.attempt, "prompt_sha256": prompt_sha256}
    steps = _steps(one)
    for number, step in enumerate(steps, start=1):
        is_last = number == len(steps)
        yield {
            **own,
            "step": number,
            "sha256": step.digest,
            "ended": one.reason if is_last else None,
            **_used(plan, one.totals if is_last else step.totals),
        }


def _used(plan: Plan, totals: Totals) -> dict[str, Any]:
    return {
        "usage": encode(totals.usage),
        "answers": totals.answers,
        "answers_without_usage": totals.uncounted,
        "cost_usd": round(totals.usd, 6) if plan.price and not totals.uncounted else None,
        "wall_s": round(totals.wall_s, 3),
        "judge_runs": totals.judge_runs,
        "finish": totals.finish,
        "served_by": totals.served_by,
    }


def _kernel_path(plan: Plan, target: Target, one: Ended, number: int) -> str:
    name = f"step_{number:02}_{plan.backend}.py"
    return f"kernels/{target.folder}/attempt_{one.task.attempt}/{name}"


def _json(value: Any) -> bytes:
    return (json.dumps(value, sort_keys=True, indent=1) + "\n").encode()
