"""Holds one attempt while it goes on: what was said, written, found and spent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evaluator.generate.asking import Asker, reply_of
from evaluator.generate.exchange import (
    Ask,
    Message,
    Prompt,
    Reply,
    Sampling,
    Tool,
    Usage,
    canonical,
)
from evaluator.generate.journal import Event, Exhausted, Journal
from evaluator.generate.judging import KernelJudge, Practice, Revision
from evaluator.generate.shell import Shell
from evaluator.messages.codec import decode, encode
from evaluator.messages.feedback import Feedback
from evaluator.messages.job import source_digest
from evaluator.messages.text import plain_text

NAME_CHARS = 100


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Lists what an agent may choose of a setting when it has a kernel judged."""

    sizes: tuple[str, ...]
    dtypes: tuple[str, ...]
    world_sizes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class AttemptTask:
    """Says what an attempt is to try. `most_steps` bounds an agent's revisions, `is_judged` says
    that kernels are judged on the way, `has_shell` that an agent may run commands."""

    problem: str
    number: int
    attempt: int
    model: str
    prompt: Prompt
    sampling: Sampling
    practice: Practice
    choices: Choices
    most_steps: int
    is_judged: bool
    has_shell: bool = False


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums what an attempt has used so far; `uncounted` are answers whose server told no tokens.
    `finish` and `served_by` are what it said last of why an answer ended, and of its model."""

    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0
    wall_s: float = 0.0
    answers: int = 0
    uncounted: int = 0
    judge_runs: int = 0
    finish: str | None = None
    served_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """Holds one revision, and what the attempt had used when it was written."""

    source: str
    totals: Totals

    @property
    def digest(self) -> str:
        """Return the kernel's identity."""
        return source_digest(self.source)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Holds what became of an attempt: the reason it ended, every step, the conversation."""

    task: AttemptTask
    reason: str
    steps: tuple[Step, ...]
    messages: tuple[Message, ...]
    totals: Totals


class AttemptFailed(Exception):
    """Says that an ask of the attempt has no answer: `why` as in exchange.Failed."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(kw_only=True)
class Course:
    """Holds an attempt. Without an asker it is a replay: only what is recorded happens.

    `messages` is what the model sees next, `said` all that was ever said: of a long conversation
    parts are dropped.
    """

    task: AttemptTask
    journal: Journal
    asker: Asker | None = None
    judge: KernelJudge | None = None
    shell: Shell | None = None
    messages: list[Message] = field(default_factory=list)
    said: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    found: dict[str, Feedback] = field(default_factory=dict)

    def __post_init__(self) -> None:
        prompt = self.task.prompt
        self._hear(Message(role="system", text=prompt.system))
        self._hear(Message(role="user", text=prompt.user))

    def ask(self, tools: tuple[Tool, ...] = ()) -> Reply:
        """Return the model's next answer, and add it to the conversation. Raises AttemptFailed."""
        ask = Ask(
            model=self.task.model,
            messages=tuple(self.messages),
            sampling=self.task.sampling,
            tools=tools,
        )
        event = self.journal.effect(ask.digest, lambda: self._live().event(ask, self.journal))
        reply = reply_of(event)
        self._add(event, reply)
        if reply is None:
            raise AttemptFailed(event["why"])
        text = reply.text or reply.refusal or ""
        said = Message(role="assistant", text=text, calls=reply.calls, reasoning=reply.reasoning)
        self._hear(said)
        return reply

    def say(self, text: str, call_id: str | None = None) -> None:
        """Add what a model is told: the result of a call where it names one."""
        role = "user" if call_id is None else "tool"
        self._hear(Message(role=role, text=text, call_id=call_id))

    def write(self, source: str) -> None:
        """Keep a revision."""
        self.steps.append(Step(source=source, totals=self.totals))

    def try_kernel(self, practice: Practice) -> Feedback:
        """Return what the judge finds of the last step, which is judged once a setting."""
        source = self.steps[-1].source
        key = f"{source_digest(source)} {canonical(encode(practice))}"
        if key not in self.found:
            event = self.journal.effect(key, lambda: self._judged(practice, source))
            self.found[key] = decode(Feedback, event["feedback"])
            self.totals = replace(
                self.totals,
                wall_s=self.totals.wall_s + event["wall_s"],
                judge_runs=self.totals.judge_runs + 1,
            )
        return self.found[key]

    def run_command(self, command: str) -> str:
        """Return what a command shows that has the last step beside it."""
        source = self.steps[-1].source if self.steps else ""
        key = canonical({"command": command, "source": source_digest(source)})
        event = self.journal.effect(key, lambda: self._ran(command, source))
        self.totals = replace(self.totals, wall_s=self.totals.wall_s + event["wall_s"])
        return str(event["shown"])

    def ended(self, reason: str) -> Ended:
        """Return the attempt as it stands."""
        return Ended(
            task=self.task,
            reason=reason,
            steps=tuple(self.steps),
            messages=tuple(self.said),
            totals=self.totals,
        )

    def _hear(self, message: Message) -> None:
        self.messages.append(message)
        self.said.append(message)

    def _live(self) -> Asker:
        if self.asker is None:
            raise Exhausted
        return self.asker

    def _judged(self, practice: Practice, source: str) -> Event:
        if self.judge is None:
            raise Exhausted
        own = Revision(source=source, attempt=self.task.attempt, step=len(self.steps))
        found, wall_s = self.judge.judge(practice, own)
        return {"kind": "judged", "feedback": encode(found), "wall_s": wall_s}

    def _ran(self, command: str, source: str) -> Event:
        if self.shell is None:
            raise Exhausted
        shown, wall_s = self.shell.run(command, source)
        return {"kind": "ran", "shown": shown, "wall_s": wall_s}

    def _add(self, event: Event, reply: Reply | None) -> None:
        so_far = self.totals
        is_uncounted = reply.usage is None if reply else event["spent"]["tokens"] > 0
        self.totals = replace(
            so_far,
            usd=so_far.usd + event["spent"]["usd"],
            uncounted=so_far.uncounted + int(is_uncounted),
        )
        if reply is not None:
            self.totals = replace(
                self.totals,
                usage=so_far.usage + (reply.usage or Usage()),
                wall_s=so_far.wall_s + reply.wall_s,
                answers=so_far.answers + 1,
                finish=plain_text(reply.finish, NAME_CHARS),
                served_by=plain_text(reply.model, NAME_CHARS),
            )
