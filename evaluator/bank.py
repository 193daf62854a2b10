"""What the judge's rank knows of the calls that it has made."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from evaluator.locks import Span
from evaluator.slab import Place, SlotLayout
from problems.calls import Outputs
from problems.values import tensors


@dataclass(kw_only=True)
class Call:
    """One call's private truth: its inputs, and the expected outputs and mutated arguments.

    `names` are the outputs' and then the mutated arguments', as `truth` holds them; `keys` is what
    the problem needs to know of answers that are as good as the truth.
    """

    inputs: dict[str, object]
    names: tuple[str, ...]
    truth: Outputs
    keys: Outputs
    layout: SlotLayout | None = None

    @property
    def span(self) -> Span | None:
        """All of its inputs."""
        return Span.over(self.layout.inputs) if self.layout else None

    def answers(self, mutates: tuple[str, ...]) -> list[tuple[Place, Tensor]]:
        """Where a right call leaves what: outputs, then arguments that it changes."""
        assert self.layout is not None
        places = iter(self.layout.inputs)
        own = {name: [next(places) for _ in tensors(v)] for name, v in self.inputs.items()}
        changed = [place for name in mutates for place in own[name]]
        return list(zip((*self.layout.outputs, *changed), self.truth, strict=True))


@dataclass(kw_only=True)
class Bank:
    """Calls laid out together in a slab: one per correctness trial, or a burst's worth."""

    calls: list[Call]
    guards: list[tuple[int, int]] = field(default_factory=list)
    nbytes: int = 0
    filled_sides: set[str] = field(default_factory=set)
