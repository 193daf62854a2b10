"""A model, a judge and a plan without any process: what the harness does can be counted."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.generate.attempt_loop import AttemptTask, Course
from evaluator.generate.budget import Purse
from evaluator.generate.exchange import Ask, Reply, ToolCall, Usage
from evaluator.generate.journal import Event, Journal
from evaluator.generate.judging import KernelJudge, Practice, Revision
from evaluator.generate.options import catalogue, parser, plan_of
from evaluator.generate.plan import (
    Plan,
    RunFiles,
    attempts,
    load_prompt,
    save_plan,
    save_prompt,
    task_of,
)
from evaluator.generate.progress import Outcome
from evaluator.generate.prompting import prompt_of
from evaluator.generate.running import Means, make, purse_of
from evaluator.generate.scrubbing import scrubber
from evaluator.generate.shell import Shell
from evaluator.messages.feedback import Feedback

KERNEL = "import torch\n\n\ndef solution(tensor):\n    return tensor.clone()\n"
FENCED = f"Here it is:\n```python\n{KERNEL}```\n"


def reply(text: str = "", *calls: tuple[str, str], **more: Any) -> Reply:
    """An answer with calls of (name, arguments)."""
    made = tuple(
        ToolCall(id=f"c{at}", name=name, arguments=arguments)
        for at, (name, arguments) in enumerate(calls)
    )
    known = {"finish": "stop", "model": "m", "wall_s": 1.0, "usage": Usage(input=90, output=10)}
    return Reply(text=text, calls=made, **{**known, **more})


@dataclass(kw_only=True)
class ScriptedModel:
    """Answers as a function of the ask says, and counts what it was asked."""

    script: Callable[[Ask], Reply]
    asked: list[str] = field(default_factory=list)

    def complete(self, ask: Ask, timeout_s: float) -> Reply:
        """Answer."""
        self.asked.append(ask.digest)
        return self.script(ask)


@dataclass(kw_only=True)
class ScriptedJudge:
    """Finds what a function of the source says: `ok` unless told otherwise."""

    verdict: Callable[[str], str] = lambda source: "ok"
    judged: list[tuple[Practice, str]] = field(default_factory=list)

    def judge(self, practice: Practice, revision: Revision) -> tuple[Feedback, float]:
        """Judge."""
        source = revision.source
        self.judged.append((practice, source))
        verdict = self.verdict(source)
        speed = {"speedup": 1.5, "speedup_low": 1.2} if verdict == "ok" else {}
        found = Feedback(verdict=verdict, text=f"verdict: {verdict}", profile="a profile", **speed)
        return found, 2.0


@dataclass(kw_only=True)
class ScriptedShell:
    """Shows what it was given, and counts it."""

    ran: list[tuple[str, str]] = field(default_factory=list)

    def run(self, command: str, source: str) -> tuple[str, float]:
        """Run nothing."""
        self.ran.append((command, source))
        return f"exit status 0\n{command} {len(self.ran)}", 3.0


def plan(*words: str, model: str = "m") -> Plan:
    """A plan as the command line makes it."""
    return plan_of(arguments(*words, model=model))


def arguments(*words: str, model: str = "m") -> argparse.Namespace:
    """What the command line holds."""
    return parser().parse_args(["run", "out", "--model", model, *words])


def lay_out(folder: Path, own: Plan) -> RunFiles:
    """Make the folder of a run."""
    place, problems = RunFiles(folder=folder), {entry["slug"]: entry for entry in catalogue()}
    for target in own.targets:
        save_prompt(place, target, prompt_of(own, target, problems[target.slug]))
    save_plan(place, own)
    return place


def go_on(
    place: RunFiles,
    own: Plan,
    model: ScriptedModel,
    judge: KernelJudge | None = None,
    purse: Purse | None = None,
    *,
    shell: Shell | None = None,
) -> list[Outcome]:
    """Make what is left of a run, without any wait."""
    means = Means(
        endpoint=model,
        judge=judge,
        shell=shell,
        scrub=scrubber(None),
        asker_options={"wait": lambda _: None, "tries": 2},
    )
    return make(place, own, means, purse or purse_of(place, own), io.StringIO())


def only_task(place: RunFiles, own: Plan) -> AttemptTask:
    """The task of a run's first attempt."""
    target, attempt = next(attempts(own))
    return task_of(own, target, attempt, load_prompt(place, target))


def course_of(task: AttemptTask, events: Sequence[Event] = ()) -> Course:
    """A replay of events."""
    return Course(task=task, journal=Journal(events))
