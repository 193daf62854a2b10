"""Look into arguments and outputs as trees of tensors, and build them anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


def linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """Make a layer of these very tensors, [out, in] and [out], none copied or initialised."""
    layer = nn.Linear(1, 1, bias=False, device="meta")
    layer.out_features, layer.in_features = weight.shape
    layer.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias, requires_grad=False)
    return layer


def sparse(indices: Tensor, values: Tensor, shape: Sequence[int]) -> Tensor:
    """Make a coalesced COO tensor of these very tensors; `indices` must be sorted and distinct."""
    return torch.sparse_coo_tensor(
        indices, values, torch.Size(shape), is_coalesced=True, check_invariants=False
    )


def tensors(value: object) -> tuple[Tensor, ...]:
    """Return the dense tensors of a value, in order: layers give their parameters, sparse tensors
    their indices and values, lists and tuples those of their items, anything else none."""
    if isinstance(value, Tensor):
        return (value.indices(), value.values()) if value.is_sparse else (value,)
    if isinstance(value, nn.Linear):
        return tuple(p.data for p in (value.weight, value.bias) if p is not None)
    if isinstance(value, (list, tuple)):
        return tuple(tensor for item in value for tensor in tensors(item))
    return ()


def equal_tensors(one: object, other: object) -> bool:
    """Return True where the tensors of two trees are the same, element by element."""
    pairs = zip(tensors(one), tensors(other), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def rebuilt(value: object, change: Callable[[Tensor], Tensor]) -> object:
    """Return the tree with every tensor changed. A sparse tensor keeps a copy of its indices."""
    if isinstance(value, Tensor):
        if value.is_sparse:
            return sparse(value.indices().clone(), change(value.values()), value.shape)
        return change(value)
    if isinstance(value, nn.Linear):
        bias = None if value.bias is None else change(value.bias.data)
        return linear(change(value.weight.data), bias)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(rebuilt(item, change) for item in value)
    return value


def named_outputs(names: Sequence[str], returned: object) -> list[tuple[str, Tensor]]:
    """Flatten what a call returned into pairs; items of a list named `x` are `x[0]`, `x[1]`, ...

    A dict is read by `names`. None and shapes, which some published kernels return between tensors,
    are no outputs. Raises ValueError for a wrong number of outputs, TypeError for no tensor.
    """
    if isinstance(returned, dict):
        missing = [name for name in names if name not in returned]
        if missing:
            raise ValueError(f"the returned dict lacks {', '.join(missing)}")
        top = [returned[name] for name in names]
    elif isinstance(returned, (list, tuple)):
        top = [v for v in returned if v is not None and not isinstance(v, torch.Size)]
        if len(names) == 1 and len(top) != 1:
            top = [top]
    else:
        top = [returned]
    if len(top) != len(names):
        raise ValueError(f"{len(top)} outputs returned, {len(names)} expected")
    return [pair for name, value in zip(names, top, strict=True) for pair in _flat(name, value)]


def _flat(name: str, value: object) -> list[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        return [(name, value)]
    if isinstance(value, (list, tuple)):
        items = enumerate(value)
        return [pair for index, item in items for pair in _flat(f"{name}[{index}]", item)]
    raise TypeError(f"{type(value).__name__} returned for {name}, not a tensor")
