"""Calling a problem's function and seeing everything it may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from problems.mesh import arguments
from problems.spec import Problem

Inputs = Mapping[str, object]


def tensors(value: object) -> tuple[Tensor, ...]:
    """The tensors of one input or output: itself, or those of a list or tuple."""
    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(item for item in value if isinstance(item, Tensor))
    return ()


def mapped(inputs: Inputs, change: Callable[[Tensor], Tensor]) -> dict[str, object]:
    """The inputs with every tensor replaced; everything else as it is."""
    return {name: _mapped(value, change) for name, value in inputs.items()}


def widened(value: Tensor) -> Tensor:
    """A float64 copy of a floating tensor, a copy of any other: what an oracle computes with."""
    return value.double().clone() if value.is_floating_point() else value.clone()


def call(
    function: Callable[..., object],
    problem: Problem,
    inputs: Inputs,
    groups: Mapping[str, ProcessGroup],
) -> tuple[Tensor, ...]:
    """Outputs, then the tensors of arguments that `problem.mutates` names, as they are afterwards.

    Works on copies: `inputs` stay as they are.
    """
    copies = mapped(inputs, torch.clone)
    outputs = tensors(function(*arguments(copies, groups)))
    return outputs + mutated(problem, copies)


def mutated(problem: Problem, inputs: Inputs) -> tuple[Tensor, ...]:
    return tuple(tensor for name in problem.mutates for tensor in tensors(inputs[name]))


def _mapped(value: object, change: Callable[[Tensor], Tensor]) -> object:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, change) for item in value)
    return value
