"""Asks as the harness of PKB asks, in our own words: the program, an example, the precision, the
hardware. It says nothing of how kernels are judged, of what is timed and of the statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.generate.exchange import Prompt
from evaluator.generate.plan import Plan
from problems.prompt import file_name
from problems.topology import HardwareClass, hardware_text

_LANGUAGES = {
    "cuda": "CUDA C++ that the module compiles when it is imported",
    "triton": "Triton",
    "parallelkittens": "ParallelKittens, which is CUDA C++ with ThunderKittens' headers",
    "pytorch": "PyTorch",
}


def part_names(plan: Plan) -> list[str]:
    """Return the names of the texts, in the order in which a model reads them."""
    example = ["example", f"example_{plan.backend}"] if plan.examples else []
    return ["pkb_system", "pkb_task", *example, "pkb_answer"]


def prompt_in_its_form(
    plan: Plan, problem: Mapping[str, Any], hardware: HardwareClass, parts: Mapping[str, str]
) -> Prompt:
    """Return the prompt of a problem, of these texts."""
    shown = [parts[name] for name in part_names(plan) if name.startswith("example")]
    sections = [
        f"{parts['pkb_task']}\nWrite the kernels in {_LANGUAGES[str(plan.backend)]}.\n",
        *(["## Example\n\n" + "\n".join(shown)] if shown else []),
        f"## Program\n\n```python\n{problem['reference_source'].rstrip()}\n```\n",
        f"## Precision\n\nFloating-point tensors are {plan.dtype}.\n",
        f"## Hardware\n\n{hardware_text(hardware)}\n",
        f"## Answer\n\n{parts['pkb_answer']}\nThe file will be called "
        f"{file_name(problem, str(plan.backend))}.\n",
    ]
    return Prompt(system=parts["pkb_system"], user="\n".join(sections), topics={})
