"""Says what a run is to make, as its folder keeps it: enough to go on, to pack and to replay."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluator.generate.attempt_loop import AttemptTask, Choices
from evaluator.generate.budget import Budget, Price
from evaluator.generate.exchange import Prompt, Sampling
from evaluator.generate.judging import Practice
from evaluator.messages.codec import decode, encode
from evaluator.messages.job import Backend, Device, Dtype, Placement

FORMAT = "pkb-generation/1"
AGENTIC = "agentic"
# Whose form a prompt has.
OURS, PKB = "ours", "pkb"
HARNESSES = ("zero-shot", "one-shot", "repeated", AGENTIC)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Names a problem of a run, and what its settings can be."""

    number: int
    slug: str
    choices: Choices

    @property
    def folder(self) -> str:
        """Return what its files are called: `13_gemm_allreduce`."""
        return f"{self.number}_{self.slug}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Holds a run. `api_key_env`, `site_token_env` and the values of `headers` name the variables
    that hold the key, the token of `site` and a header; these are kept nowhere."""

    model: str
    harness: str
    backend: Backend
    targets: tuple[Target, ...]
    samples: int
    examples: int
    steps: int
    hardware: str
    world_size: int
    size: str
    dtype: Dtype
    device: Device
    judge: str
    sampling: Sampling
    recipe_sha256: str
    software_version: str
    base_url: str | None = None
    api_key_env: str | None = None
    budget: Budget = field(default_factory=Budget)
    price: Price | None = None
    parallel: int = 1
    timeout_s: float = 1800.0
    placement: Placement = Placement.FULL
    site: str | None = None
    site_token_env: str | None = None
    shell: bool = False
    stream: bool = False
    provider: str | None = None
    max_tokens_name: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    prompt_style: str = OURS
    format: str = FORMAT

    @property
    def recipe(self) -> str:
        """Return how models are prompted: `zero-shot`, `pkb-one-shot`, `agentic-shell`, ..."""
        if self.prompt_style == PKB:
            return "pkb-one-shot" if self.examples else "pkb-zero-shot"
        if self.harness != AGENTIC:
            return "one-shot" if self.examples else "zero-shot"
        more = ("-shell" if self.shell else "", "-one-shot" if self.examples else "")
        return f"{AGENTIC}{''.join(more)}"

    @property
    def is_judged(self) -> bool:
        """Return whether kernels are judged while the run goes on."""
        return self.judge != "none"


@dataclass(frozen=True, kw_only=True)
class RunFiles:
    """Names the files of a run."""

    folder: Path

    @property
    def plan(self) -> Path:
        """Return where the plan is kept."""
        return self.folder / "run.json"

    @property
    def sessions(self) -> Path:
        """Return where it is kept when the run was begun and gone on with."""
        return self.folder / "sessions.jsonl"

    @property
    def archive(self) -> Path:
        """Return where `pack` writes."""
        return self.folder.with_name(self.folder.name + ".tar.gz")

    def prompt(self, target: Target) -> Path:
        """Return where a problem's prompt is kept."""
        return self.folder / "prompts" / f"{target.folder}.json"

    def events(self, target: Target, attempt: int) -> Path:
        """Return where an attempt's events are."""
        return self.folder / "attempts" / target.folder / f"{attempt}.jsonl"


def attempts(plan: Plan) -> Iterator[tuple[Target, int]]:
    """Yield every attempt: the first of each problem before any second."""
    for attempt in range(1, plan.samples + 1):
        for target in plan.targets:
            yield target, attempt


def task_of(plan: Plan, target: Target, attempt: int, prompt: Prompt) -> AttemptTask:
    """Return what an attempt is to try. A seed goes up by one from attempt to attempt."""
    seed = plan.sampling.seed
    practice = Practice(
        problem=target.slug,
        backend=plan.backend,
        world_size=plan.world_size,
        size=plan.size,
        dtype=plan.dtype,
        device=plan.device,
        placement=plan.placement,
    )
    return AttemptTask(
        problem=target.slug,
        number=target.number,
        attempt=attempt,
        model=plan.model,
        prompt=prompt,
        sampling=replace(plan.sampling, seed=None if seed is None else seed + attempt - 1),
        practice=practice,
        choices=target.choices,
        most_steps=plan.steps,
        is_judged=plan.is_judged,
        has_shell=plan.shell,
    )


def save_plan(place: RunFiles, plan: Plan) -> None:
    """Write the plan, all of it or nothing."""
    place.folder.mkdir(parents=True, exist_ok=True)
    _write(place.plan, json.dumps(encode(plan), indent=1) + "\n")


def load_plan(place: RunFiles) -> Plan:
    """Read the plan. Raises ValueError where the folder is no run's, or of another format."""
    try:
        plan = decode(Plan, json.loads(place.plan.read_text()))
    except FileNotFoundError:
        raise ValueError(
            f"{place.folder} is no folder of a run: it has no {place.plan.name}"
        ) from None
    if plan.format != FORMAT:
        raise ValueError(f"{place.plan} is of the format {plan.format}, not {FORMAT}")
    return plan


def save_prompt(place: RunFiles, target: Target, prompt: Prompt) -> None:
    """Keep a prompt: going on and replaying need what was said, whatever problems say by then."""
    place.prompt(target).parent.mkdir(parents=True, exist_ok=True)
    _write(place.prompt(target), json.dumps(encode(prompt), indent=1) + "\n")


def load_prompt(place: RunFiles, target: Target) -> Prompt:
    """Read a prompt that was kept."""
    return decode(Prompt, json.loads(place.prompt(target).read_text()))


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
