"""What the judge's rank knows of the calls that it has made."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaluator.slab import SlotLayout
from problems.calls import Outputs


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


@dataclass(kw_only=True)
class Bank:
    """Calls laid out together in a slab: one per correctness trial, or a burst's worth."""

    calls: list[Call]
    guards: list[tuple[int, int]] = field(default_factory=list)
    nbytes: int = 0
    filled_sides: set[str] = field(default_factory=set)
