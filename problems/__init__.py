"""Find and load problems: one module each, in the folder of its category, is the registry.

Importing this package needs the standard library only; `load` imports torch.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from .default_groups import with_default_groups
from .spec import Cost, Dims, Problem

if TYPE_CHECKING:
    from torch import Tensor

    from problems.context import RankContext

    Outputs = tuple[Tensor, ...]

FOLDER = Path(__file__).parent

CATEGORIES: Mapping[str, str] = {
    "collective_primitive": "Collective Primitive",
    "tensor_parallel": "Tensor Parallel",
    "sequence_parallel": "Sequence Parallel",
    "context_parallel": "Context Parallel",
    "pipeline_parallel": "Pipeline Parallel",
    "data_parallel": "Data Parallel",
    "expert_parallel": "Expert Parallel",
    "fsdp_zero": "FSDP / ZeRO",
    "vocab_parallel": "Vocab Parallel",
    "graph_parallel": "Graph Parallel",
    "geometric_spatial": "Geometric / Spatial",
    "other": "Other",
}

_NUMBER = re.compile(r"^    number=(\d+),$", re.MULTILINE)


class UnknownProblem(LookupError):
    """Raised where no problem has this slug, number or dotted name."""


@dataclass(frozen=True, kw_only=True)
class ProblemModule:
    """Hold a loaded problem file. `oracle` is the reference unless the file defines another one.

    Where several answers are right, `keys` (with the parameters of the reference) computes what
    `settle(got, truth, keys)` needs to put `truth` in place of every answer that is as good.
    """

    slug: str
    category: str
    path: Path
    problem: Problem
    dims: Callable[[int, int, int], Dims]
    make_inputs: Callable[[RankContext, Dims], dict[str, object]]
    reference: Callable[..., object]
    oracle: Callable[..., object]
    keys: Callable[..., tuple[Tensor, ...]] | None
    settle: Callable[[Outputs, Outputs, Outputs], Outputs] | None
    cost: Callable[[Dims, int, int], Cost]

    @property
    def category_title(self) -> str:
        return CATEGORIES[self.category]

    @property
    def digest(self) -> str:
        """Return the file's SHA-256: results of another digest are results of another problem."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def names() -> list[str]:
    """Return dotted names below `problems`, such as `tensor_parallel.gemm_allreduce`, by number."""
    numbers = _numbers()
    return sorted(numbers, key=numbers.__getitem__)


def find(text: str) -> str:
    """Return the dotted name that a slug, a number or a dotted name stands for.

    Raises UnknownProblem, whose text suggests near ones.
    """
    for name, number in _numbers().items():
        if text in (name, name.partition(".")[2], str(number)):
            return name
    slugs = [name.partition(".")[2] for name in names()]
    near = difflib.get_close_matches(text, slugs, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(slugs)}"
    raise UnknownProblem(f"no problem is called {text!r}: {hint}")


@cache
def load(name: str) -> ProblemModule:
    """Import the problem of a dotted name (see `find`); raises UnknownProblem."""
    if name not in _numbers():
        raise UnknownProblem(f"no problem is called {name!r}: use find() for slugs and numbers")
    category, _, slug = name.partition(".")
    module = import_module(f"problems.{name}")
    return ProblemModule(
        slug=slug,
        category=category,
        path=_path(name),
        problem=module.problem,
        dims=module.dims,
        make_inputs=with_default_groups(
            module.make_inputs, module.reference, module.problem.statement
        ),
        reference=module.reference,
        oracle=getattr(module, "oracle", module.reference),
        keys=getattr(module, "keys", None),
        settle=getattr(module, "settle", None),
        cost=module.cost,
    )


@cache
def _numbers() -> Mapping[str, int]:
    """Map dotted names to numbers, read from the text so that no problem has to be imported."""
    found = {}
    for category in CATEGORIES:
        for path in sorted((FOLDER / category).glob("[!_]*.py")):
            match = _NUMBER.search(path.read_text())
            if match is None:
                raise ValueError(f"{path} names no number: write it as `    number=13,`")
            found[f"{category}.{path.stem}"] = int(match[1])
    return found


def _path(name: str) -> Path:
    category, _, slug = name.partition(".")
    return FOLDER / category / f"{slug}.py"
