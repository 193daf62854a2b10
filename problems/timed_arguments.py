"""Say what the arguments of timed calls are: their shapes, dtypes and values, by name.

Tensors are drawn without memory where that is possible, several calls on every rank: what differs
from call to call or from rank to rank is said as a range.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)

from problems import ProblemModule
from problems.context import RankContext
from problems.spec import GroupRef
from problems.trials import TrialSpec, timed_trial

DRAWS = 6
MOST_ELEMENTS = 1 << 24  # beyond them one call is drawn, where drawing takes time
SECRET = b"what timed calls look like"
RUN_DTYPE, WORD = torch.float16, "{dtype}"  # no problem fixes that dtype
MOST_VALUES = 4  # so many are listed; of more the range is told


Words = dict[str, str | dict[str, str]]


def timed_arguments(module: ProblemModule) -> dict[str, Words]:
    """Return words for each argument, by size and name; by the number of ranks, too, where it
    matters. `{dtype}` is the run's."""
    return {size: _of_size(module, size) for size in module.problem.sizes}


def _of_size(module: ProblemModule, size: str) -> Words:
    found = {str(n): _arguments(module, size, n) for n in module.problem.world_sizes}
    names = next(iter(found.values()))
    by_ranks = {name: {n: each[name] for n, each in found.items()} for name in names}
    return {
        name: next(iter(each.values())) if len({*each.values()}) == 1 else each
        for name, each in by_ranks.items()
    }


def _arguments(module: ProblemModule, size: str, ranks: int) -> dict[str, str]:
    specs = [timed_trial(module.problem, size, trial, SECRET) for trial in range(DRAWS)]
    try:
        with FakeTensorMode():
            calls = [*_calls(module, specs, ranks, RankContext)]
    except (DataDependentOutputException, DynamicOutputShapeException):
        few = specs if specs[0].m * specs[0].n <= MOST_ELEMENTS else specs[:1]
        calls = [*_calls(module, few, ranks, _Light)]
    return {name: words([call[name] for call in calls]) for name in calls[0]}


class _Light(RankContext):
    """Draw normal values as one number seen everywhere: no length depends on them."""

    def randn(self, *shape: int, shared: bool = False, dtype: torch.dtype | None = None) -> Tensor:
        return torch.zeros((), dtype=dtype or self.dtype).expand(shape)


def _calls(
    module: ProblemModule, specs: Iterable[TrialSpec], ranks: int, kind: type[RankContext]
) -> Iterator[Mapping[str, object]]:
    """Yield the arguments of timed calls on the first and the last rank."""
    number, device = module.problem.number, torch.device("cpu")
    how: dict[str, Any] = {"profile": "hardened", "dtype": RUN_DTYPE, "device": device}
    for spec in specs:
        for rank in (0, ranks - 1):
            context = kind(
                rank=rank, world_size=ranks, number=number, spec=spec, secret=SECRET, **how
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield module.make_inputs(context, module.dims(spec.m, spec.n, ranks))


def words(values: Sequence[object]) -> str:
    """Return words for an argument from the values that calls gave it."""
    kinds = [part for part in map(_of_kind, _by_kind(values)) if part]
    return " or ".join(kinds)


def _by_kind(values: Iterable[object]) -> Iterator[list[object]]:
    """Yield the values that one phrase can describe together."""
    kinds: dict[object, list[object]] = defaultdict(list)
    for value in values:
        kinds[_kind(value)].append(value)
    yield from kinds.values()


def _kind(value: object) -> object:
    if isinstance(value, Tensor):
        return ("tensor", value.dtype, value.dim(), value.is_sparse)
    return (type(value), value.bias is None) if isinstance(value, nn.Linear) else type(value)


def _of_kind(values: Sequence[Any]) -> str:
    first = values[0]
    match first:
        case Tensor():
            sparse = "sparse " if first.is_sparse else ""
            return f"{sparse}{_dtype(first.dtype)} {_shape([each.shape for each in values])}"
        case nn.Linear():
            bias = "" if first.bias is None else " with bias"
            sizes = [(each.in_features, each.out_features) for each in values]
            inside, outside = (_range([pair[at] for pair in sizes]) for at in (0, 1))
            return f"a Linear of {_dtype(first.weight.dtype)}, {inside} to {outside} features{bias}"
        case list() | tuple():
            return _of_lists(values)
        case GroupRef():
            axes = dict.fromkeys(each.axis for each in values)
            return " or ".join("all ranks" if a == "world" else f"the group {a}" for a in axes)
        case None | bool() | str():
            return " or ".join(dict.fromkeys(map(str, values)))
        case int() | float():
            return _range(values)
    raise TypeError(f"no words for {type(first).__name__}")


def _of_lists(values: Sequence[Sequence[object]]) -> str:
    """Say how many items lists have and what they are; short ones of fixed numbers as they are."""
    alike = dict.fromkeys(map(str, values))
    items = [item for each in values for item in each]
    if len(alike) == 1 and not any(isinstance(item, (Tensor, nn.Linear)) for item in items):
        return next(iter(alike))
    kind = type(values[0]).__name__
    return f"{kind} of {_range([len(each) for each in values])}: {words(items) or 'nothing'}"


def _dtype(dtype: torch.dtype) -> str:
    return WORD if dtype is RUN_DTYPE else str(dtype).removeprefix("torch.")


def _shape(shapes: Sequence[torch.Size]) -> str:
    return f"[{', '.join(_range(lengths) for lengths in zip(*shapes, strict=True))}]"


def _range(numbers: Iterable[float]) -> str:
    found = sorted(set(numbers))
    shown = [f"{each:.4g}" if isinstance(each, float) else str(each) for each in found]
    return " or ".join(shown) if len(found) <= MOST_VALUES else f"{shown[0]} to {shown[-1]}"
