"""Give the screen wrong kernels of one problem: its reference with a few words replaced.

They are declared in mutants.toml, away from the problem files, whose text models may be shown.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from problems import ProblemModule
from problems.audit.scene import Answer, Scene
from problems.running.calls import Outputs
from problems.sources import reference_source

PATH = Path(__file__).with_name("mutants.toml")

Edits = Sequence[Sequence[str]]  # pairs of old and new text


def mutants(module: ProblemModule) -> Mapping[str, Answer]:
    """Return the declared wrong kernels of a problem as answers, in order."""
    return {name: _answer(module, name) for name in declared().get(module.slug, {})}


@cache
def declared() -> Mapping[str, Mapping[str, Edits]]:
    """Read the edits of every mutant by slug and name."""
    found: dict[str, dict[str, Edits]] = tomllib.loads(PATH.read_text())
    return found


def edited(source: str, edits: Edits) -> str:
    """Replace each old text by the new one; raises ValueError where it is not there just once."""
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(f"{old!r} is {source.count(old)} times in the reference, not once")
        source = source.replace(old, new)
    return source


def mutant(module: ProblemModule, name: str) -> Callable[..., object]:
    """Return a declared mutant; raises ValueError where its edits do not fit."""
    return edited_reference(module, declared()[module.slug][name], name)


def edited_reference(module: ProblemModule, edits: Edits, name: str) -> Callable[..., object]:
    """Return the reference with edits, by a name for tracebacks; raises ValueError where they do
    not fit."""
    space: dict[str, Callable[..., object]] = {}
    source = edited(reference_source(module), edits)
    exec(compile(source, f"{module.slug} {name}", "exec"), space)
    return space["reference"]


def _answer(module: ProblemModule, name: str) -> Answer:
    def give(scene: Scene, others: list[Scene]) -> Outputs | None:
        counts = scene.context.world_size >= module.problem.ranked_from
        return scene.call(mutant(module, name)) if counts else None

    return give


def mutants_fit_the_reference(module: ProblemModule) -> list[str]:
    """Complain of declared mutants whose edits do not fit the reference, for `rules`."""
    complaints = []
    for name in declared().get(module.slug, {}):
        try:
            mutant(module, name)
        except (ValueError, SyntaxError) as error:
            complaints.append(f"mutant {name}: {error}")
    return complaints
