"""Puts together what a model is given of a problem, of parts that are data: `prompts/*.md`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.generate import pkb_prompting
from evaluator.generate.exchange import Prompt
from evaluator.generate.plan import AGENTIC, PKB, Plan, Target
from evaluator.messages.job import Device
from problems import environment, prompt, topology

FOLDER = Path(__file__).parent / "prompts"


def parts_of(plan: Plan) -> dict[str, str]:
    """Return the texts of a recipe by their names, in the order a model reads them.

    Raises ValueError where there is no example for the backend.
    """
    if plan.prompt_style == PKB:
        return {name: _text(name) for name in pkb_prompting.part_names(plan)}
    names = [] if plan.device is Device.CPU else ["symmetric_memory"]
    names.append(f"backend_{plan.backend}")
    if plan.examples:
        names += ["example", f"example_{plan.backend}"]
    is_agentic = plan.harness == AGENTIC
    names.append("agent" if is_agentic else "single")
    if is_agentic and plan.is_judged:
        names.append("agent_judge")
    if plan.shell:
        names.append("agent_shell")
    return {name: _text(name) for name in ["system", *names]}


def recipe_digest(plan: Plan) -> str:
    """Return the SHA-256 of the recipe's parts: all of a prompt but what a problem says."""
    whole = "".join(f"{name}\0{text}\0" for name, text in parts_of(plan).items())
    return hashlib.sha256(whole.encode()).hexdigest()


def prompt_of(
    plan: Plan,
    target: Target,
    problem: Mapping[str, Any],
    versions: Mapping[str, str] | None = None,
) -> Prompt:
    """Return the prompt of a problem, which comes as the catalogue has it, for a host with these
    versions, or those of the release. Raises ValueError for what the problem, or the hardware,
    does not have."""
    named = topology.class_called(plan.hardware)
    hardware = topology.problem_text(named, problem)
    if hardware is None or named.ranks < plan.world_size:
        raise ValueError(f"{named.title} has too few ranks for {target.slug}")
    if plan.prompt_style == PKB:
        return pkb_prompting.prompt_in_its_form(plan, problem, named, parts_of(plan))
    own = environment.of_release(plan.device, named.title) if versions is None else versions
    about = prompt.prompt(
        problem,
        backend=str(plan.backend),
        hardware_text=f"{hardware} {environment.environment_text(own, str(plan.backend))}",
        world_size=plan.world_size,
        dtype=str(plan.dtype),
        size=plan.size,
    )
    parts = parts_of(plan)
    sections = [about, *(_section(name, text) for name, text in parts.items() if name != "system")]
    topics = {"problem": about, "backend": parts[f"backend_{plan.backend}"]}
    if "symmetric_memory" in parts:
        topics["symmetric_memory"] = parts["symmetric_memory"]
    sections.append(f"An answer may have {plan.sampling.max_output_tokens} tokens at most.\n")
    return Prompt(system=parts["system"], user="\n".join(sections), topics=topics)


def _section(name: str, text: str) -> str:
    """Return a part under its heading; some go on where the one before ends."""
    title = {
        "symmetric_memory": "Symmetric memory",
        "example": "An example",
        "single": "How to answer",
        "agent": "How to work",
    }.get(name) or ("More about the backend" if name.startswith("backend_") else None)
    return f"## {title}\n\n{text}" if title else text


def _text(name: str) -> str:
    try:
        return (FOLDER / f"{name}.md").read_text()
    except FileNotFoundError:
        raise ValueError(f"there is no text {name}.md in {FOLDER.name}/: ask without it") from None
