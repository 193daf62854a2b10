"""Withholds from a submission what operations of torch.distributed yield until it waits for them.

NCCL is at work when a call with `async_op=True` returns. Gloo is often done by then, and
`problems.running.staged_collectives` always: a kernel without `wait()` would be correct there only.
Here such a call, or `irecv`, begins at once, over copies of its tensors. Its outputs hold poison
until the kernel waits. As with NCCL, that also completes what began earlier in the same group, and
so does a call without `async_op`; `torch.cuda.synchronize()` completes everything.

Judged correct, though wrong on NCCL: kernels that write to an input before they wait, and those
that do not wait for `isend`, methods of a group or functional collectives.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as c10d

from problems.running.staging import Finished, put, rank_in_group

# The parameter that an operation writes to.
_OUTPUTS = {
    **dict.fromkeys(("all_reduce", "reduce", "broadcast", "scatter", "irecv"), "tensor"),
    **dict.fromkeys(("all_to_all_single", "reduce_scatter", "reduce_scatter_tensor"), "output"),
    **dict.fromkeys(("all_gather_into_tensor", "all_gather_single"), "output_tensor"),
    "reduce_scatter_single": "output",
    "all_gather": "tensor_list",
    "all_to_all": "output_tensor_list",
    "gather": "gather_list",
    "all_reduce_coalesced": "tensors",
    "all_gather_coalesced": "output_tensor_lists",
}
# In these a rank's input may lie in its output, where it is part of the result.
_IN_PLACE = {"all_gather", "all_gather_into_tensor", "all_gather_single", "gather", "scatter"}


class Late(Finished):
    """Stands for a `dist.Work` that has its results in copies of the outputs. `stream` is the same
    for operations of which a later one is done after an earlier one."""

    def __init__(
        self, work: Any, outputs: list[Tensor], results: list[Tensor], stream: object
    ) -> None:
        self._work, self._results, self._stream = work, results, stream
        super().__init__(self._publish, outputs)
        self._earlier = [other for other in _begun if other._stream is stream]
        if outputs:
            _begun.append(self)

    def is_completed(self) -> bool:
        """Return True if it is done; its outputs have its results from then on."""
        return super().is_completed() or (self._work.is_completed() and self.wait())

    def block_current_stream(self) -> None:
        """Wait, as `synchronize` does."""
        self.wait()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    def _publish(self) -> None:
        for other in self._earlier:
            other.wait()
        self._work.wait()
        for output, result in zip(self._outputs, self._results, strict=True):
            put(output.data, result)
        self._earlier, self._results = [], []
        if self in _begun:
            _begun.remove(self)


_begun: list[Late] = []  # whose outputs hold poison
_managers: list[Any] = []  # in whose contexts this rank is, of torch's `_coalescing_manager`


def install() -> None:
    """Replace torch's functions, or those that stand in for them, in this process and for good."""
    for name in (*_OUTPUTS, "isend", "barrier"):
        if hasattr(c10d, name):
            _replace(name, _late(getattr(c10d, name)))
    _replace("_coalescing_manager", _coalescing_manager)
    vars(torch.cuda)["synchronize"] = _completing_all(torch.cuda.synchronize)


def _replace(name: str, function: Callable[..., Any]) -> None:
    for module in (c10d, dist):
        setattr(module, name, function)


def _late(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    names = list(signature.parameters)
    place = names.index("async_op") if "async_op" in names else None

    @functools.wraps(function)
    def begin(*args: Any, **kwargs: Any) -> Any:
        is_async = place is None or kwargs.get("async_op", place < len(args) and args[place])
        given = signature.bind(*args, **kwargs).arguments
        if not is_async and not _managers:
            found = function(*args, **kwargs)
            _complete(_stream(given))
            return found
        if place is not None:
            given["async_op"] = True
        work = _begin(function, given)
        if _managers:
            _managers[-1].append(work)
        return work if is_async else None

    return begin


def _begin(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Begin an operation over copies, poison what it writes to, and return its handle."""
    name = function.__name__
    if name not in _OUTPUTS:
        return function(**given)
    copies = {key: _copied(value) for key, value in given.items()}
    work = function(**copies)
    if work is None:  # this rank is not in the group
        return None
    key, is_writer = _OUTPUTS[name], _writes(name, given)
    outputs, results = (list(_tensors(of.get(key))) if is_writer else [] for of in (given, copies))
    for output in outputs:
        put(output.data, _poison(output))
    if name in _IN_PLACE:
        inputs = (list(_tensors([v for k, v in of.items() if k != key])) for of in (given, copies))
        _restore(outputs, zip(*inputs, strict=True))
    is_alone = name == "irecv"  # NCCL has a stream for each pair of ranks
    return Late(work, outputs, results, object() if is_alone else _stream(given))


def _stream(given: Mapping[str, Any]) -> object:
    """Return a stand-in for the stream in which NCCL would do an operation."""
    return given.get("group") or dist.group.WORLD


def _complete(stream: object) -> None:
    for work in [own for own in _begun if own._stream is stream]:
        work.wait()


def _writes(name: str, given: Mapping[str, Any]) -> bool:
    """Return True if this rank's tensors are written to."""
    root = "src" if name == "broadcast" else "dst"
    if name not in {"broadcast", "reduce", "gather"}:
        return True
    group = given.get("group")
    root_rank = rank_in_group(given.get(root), given.get(f"group_{root}"), group)
    return (dist.get_rank(group) == root_rank) is (root == "dst")


def _restore(outputs: list[Tensor], inputs: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Put back each input that lies in an output, given with its copy."""
    for tensor, copy in inputs:
        begins = tensor.data_ptr()
        if any(0 <= begins - output.data_ptr() < output.nbytes for output in outputs):
            put(tensor.data, copy)


def _poison(tensor: Tensor) -> Tensor:
    """Return a value that no result should have, to be copied to all of a tensor."""
    kind = tensor.dtype
    if kind is torch.bool:
        return ~tensor
    if kind.is_floating_point or kind.is_complex:
        return torch.tensor(torch.nan).to(kind)
    limits = torch.iinfo(kind)
    return torch.tensor(limits.min or limits.max, dtype=kind)


def _copied(value: Any) -> Any:
    """Return a copy of tensors, with their strides; anything else as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(item) for item in value)
    if not isinstance(value, Tensor):
        return value
    lengths = zip(value.shape, value.stride(), strict=True)
    length = 1 + sum((count - 1) * step for count, step in lengths) if value.numel() else 0
    whole = value.data.as_strided((length,), (1,)).clone()
    return whole.as_strided(value.shape, value.stride())


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


@contextmanager
def _coalescing_manager(
    group: Any = None, device: Any = None, async_ops: bool = False
) -> Iterator[Any]:
    """Do as torch's does: what is begun inside is done once the manager is waited for."""
    manager = vars(c10d)["_CoalescingManager"]()
    _managers.append(manager)
    try:
        yield manager
    finally:
        _managers.remove(manager)
    if not async_ops:
        manager.wait()


def _completing_all(synchronize: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(synchronize)
    def complete(device: Any = None) -> None:
        synchronize(device)
        for work in list(_begun):
            work.wait()

    return complete
