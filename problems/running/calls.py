"""Call a problem's function and see everything that it may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from problems import ProblemModule
from problems.context import RankContext
from problems.running.mesh import arguments
from problems.spec import Problem
from problems.trials import TrialSpec
from problems.values import named_outputs, rebuilt, tensors

Inputs = Mapping[str, object]
Outputs = tuple[Tensor, ...]


def drawn(
    module: ProblemModule, spec: TrialSpec, rank: int, world_size: int, **how: Any
) -> tuple[RankContext, dict[str, object]]:
    """Draw a rank's inputs of a trial; return them with what they were drawn from.

    They are hardened, in float32 and on the processor, but for `how`, which names the secret.
    """
    number = module.problem.number
    usual = {"profile": "hardened", "dtype": torch.float32, "device": torch.device("cpu")}
    values: dict[str, Any] = {**usual, **how}
    context = RankContext(rank=rank, world_size=world_size, number=number, spec=spec, **values)
    return context, module.make_inputs(context, module.dims(spec.m, spec.n, world_size))


def mapped(inputs: Inputs, change: Callable[[Tensor], Tensor]) -> dict[str, object]:
    """Return the inputs with every tensor replaced; everything else as it is."""
    return {name: rebuilt(value, change) for name, value in inputs.items()}


def widened(value: Tensor) -> Tensor:
    """Return a float64 or complex128 copy, or a plain one of integers, for an oracle."""
    if value.is_complex():
        return value.to(torch.complex128, copy=True)
    return value.to(torch.float64, copy=True) if value.is_floating_point() else value.clone()


def call(
    function: Callable[..., object],
    problem: Problem,
    inputs: Inputs,
    groups: Mapping[str, ProcessGroup],
) -> Outputs:
    """Return outputs, then the tensors of arguments in `problem.mutates` as they are afterwards.

    Works on copies of those arguments, so `inputs` stay as they are.
    """
    given = {
        name: rebuilt(value, torch.clone) if name in problem.mutates else value
        for name, value in inputs.items()
    }
    return tuple(tensor for _, tensor in named_call(function, problem, given, groups))


def true_answer(
    module: ProblemModule, inputs: Inputs, groups: Mapping[str, ProcessGroup]
) -> list[tuple[str, Tensor]]:
    """Return the oracle's outputs and changed arguments, from widened inputs, with their names."""
    return named_call(module.oracle, module.problem, mapped(inputs, widened), groups)


def keys_of_ties(
    module: ProblemModule, inputs: Inputs, groups: Mapping[str, ProcessGroup]
) -> Outputs:
    """Return the tensors that `settle` needs; none where only one answer is right."""
    return module.keys(*arguments(mapped(inputs, widened), groups)) if module.keys else ()


def named_call(
    function: Callable[..., object],
    problem: Problem,
    inputs: Inputs,
    groups: Mapping[str, ProcessGroup],
) -> list[tuple[str, Tensor]]:
    """Do as `call`, with the name of every tensor, and on the inputs themselves."""
    outputs = named_outputs(problem.outputs, function(*arguments(inputs, groups)))
    changed = [(name, tensor) for name in problem.mutates for tensor in tensors(inputs[name])]
    return outputs + changed


def mutated(problem: Problem, inputs: Inputs) -> Outputs:
    return tuple(tensor for name in problem.mutates for tensor in tensors(inputs[name]))
