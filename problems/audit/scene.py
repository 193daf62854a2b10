"""Hold what an answer of the screen is given: one trial on one rank, and its truth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup

from problems import ProblemModule
from problems.audit.partial_collectives import counts_changed
from problems.context import RankContext
from problems.running.calls import Inputs, Outputs, call
from problems.spec import Tolerance

LINES = 1000  # more than a problem's file has


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Hold one trial on one rank: its inputs, and the truth that an answer is compared with, by a
    tolerance for each tensor."""

    module: ProblemModule
    context: RankContext
    inputs: Inputs
    groups: Mapping[str, ProcessGroup]
    truth: Outputs
    tolerances: tuple[Tolerance, ...]
    keys: Outputs

    def reference(self, inputs: Inputs | None = None) -> Outputs:
        return self.call(self.module.reference, inputs)

    def call(self, function: Callable[..., object], inputs: Inputs | None = None) -> Outputs:
        used = self.inputs if inputs is None else inputs
        return call(function, self.module.problem, used, self.groups)

    @property
    def own(self) -> Outputs:
        """Return the reference's own answer; every rank must ask for it at once."""
        return self._first_call[0]

    @property
    def counts(self) -> list[Tensor]:
        """Return what ranks told this one of numbers of elements, in order; likewise."""
        return self._first_call[1]

    @cached_property
    def published(self) -> Inputs:
        """Return PKB's inputs of this trial."""
        context = replace(self.context, profile="upstream", _streams={}, _choices=count())
        dims = self.module.dims(context.spec.m, context.spec.n, context.world_size)
        return self.module.make_inputs(context, dims)

    @cached_property
    def _first_call(self) -> tuple[Outputs, list[Tensor]]:
        told: list[Tensor] = []
        with counts_changed(lambda one: told.append(one.clone())):
            return self.settled(self.reference()), told

    def on_any_rank(self, told: bool) -> bool:
        """Return on every rank whether one is told so: ranks that decided by their own values would
        call the reference alone and hang the others."""
        somewhere = torch.tensor(float(told), device=self.context.device)
        dist.all_reduce(somewhere, dist.ReduceOp.MAX)
        return bool(somewhere)

    def lines_on_any_rank(self, lines: Collection[int]) -> list[int]:
        """Return on every rank the numbers of lines that any rank gives, in order."""
        given = torch.zeros(LINES, device=self.context.device)
        given[list(lines)] = 1
        dist.all_reduce(given, dist.ReduceOp.MAX)
        return given.nonzero().flatten().tolist()

    def settled(self, got: Outputs) -> Outputs:
        """Return the answer with the truth wherever it is as good as the truth."""
        shapes = [t.shape for t in got] == [t.shape for t in self.truth]
        if self.module.settle is None or not self.keys or not shapes:
            return got
        return self.module.settle(got, self.truth, self.keys)


Variants = dict[str, Outputs]
# An answer, or several variants of one, of which a rank may leave out those that change nothing.
# All ranks compute it, or all return None where the problem offers no such one: a rank that decided
# alone would leave the others waiting for it.
Answer = Callable[[Scene, list[Scene]], Outputs | Variants | None]
