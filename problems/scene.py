"""Hold what an answer of the screen is given: one trial on one rank, and its truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch.distributed import ProcessGroup

from problems import ProblemModule
from problems.calls import Inputs, Outputs, call
from problems.context import RankContext


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Hold one trial on one rank: its inputs, and the truth that an answer is compared with."""

    module: ProblemModule
    context: RankContext
    inputs: Inputs
    groups: Mapping[str, ProcessGroup]
    truth: Outputs
    keys: Outputs

    def reference(self, inputs: Inputs | None = None) -> Outputs:
        return self.call(self.module.reference, inputs)

    def call(self, function: Callable[..., object], inputs: Inputs | None = None) -> Outputs:
        used = self.inputs if inputs is None else inputs
        return call(function, self.module.problem, used, self.groups)

    def settled(self, got: Outputs) -> Outputs:
        """Return the answer with the truth wherever it is as good as the truth."""
        shapes = [t.shape for t in got] == [t.shape for t in self.truth]
        if self.module.settle is None or not self.keys or not shapes:
            return got
        return self.module.settle(got, self.truth, self.keys)


# All ranks give an answer, or all return None where the problem offers no such one: a rank that
# decided alone would leave the others waiting for it.
Answer = Callable[[Scene, list[Scene]], Outputs | None]
