"""Move tensors through host memory, and let gloo exchange and reduce them there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

NO_CAPTURE = "ranks that share a GPU have no torch.distributed inside a CUDA graph"
# What gloo cannot add up is widened meanwhile.
_WIDER = {torch.int16: torch.int32, torch.uint16: torch.int32, torch.bool: torch.uint8}
originals = SimpleNamespace()  # torch's own collectives, where others have taken their place


class Finished:
    """Stands for a `dist.Work`: what is left to do is done when somebody waits for it."""

    def __init__(
        self, finish: Callable[[], object] | None = None, outputs: Iterable[Tensor] = ()
    ) -> None:
        self._finish, self._outputs = finish, list(outputs)

    def wait(self, timeout: object = None) -> bool:
        """Do what is left to do."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()
        return True

    def synchronize(self) -> None:
        """Do the same."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether nothing is left to do."""
        return self._finish is None

    is_success = is_completed

    def result(self) -> list[Tensor]:
        """Return its outputs, finished or not."""
        return self._outputs

    def get_future(self) -> Any:
        """Return a future that has its outputs, finished."""
        self.wait()
        future: torch.futures.Future[list[Tensor]] = torch.futures.Future()
        future.set_result(self._outputs)
        return future


def bytes_of(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor's bytes in host memory: uint8, [nbytes]. Waits for the current
    stream."""
    return _on_host(tensor).reshape(-1).view(torch.uint8)


def put_bytes(places: Iterable[Tensor], values: Iterable[Tensor]) -> None:
    """Store bytes of host memory (uint8) in tensors of as many bytes."""
    for place, raw in zip(places, values, strict=True):
        put(place, raw.clone().view(place.dtype).view(place.shape))


def put(place: Tensor, value: Tensor) -> None:
    """Store a value of host memory in a tensor of its shape; it is there on return."""
    with torch.no_grad():
        place.copy_(value)
    if place.is_cuda:
        torch.cuda.current_stream(place.device).synchronize()


def exchange(parts: Sequence[Tensor], room: Sequence[int], group: Any) -> list[Tensor]:
    """Send each rank of the group its bytes (uint8); return those of each, `room` says how many."""
    received = torch.empty(sum(room), dtype=torch.uint8)
    lengths = [len(part) for part in parts]
    originals.all_to_all_single(received, torch.cat(list(parts)), list(room), lengths, group=group)
    return split(received, room)


def split(raw: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """Return parts of so many bytes."""
    return list(raw.split(list(lengths)))  # type: ignore[no-untyped-call]


def part_bytes(tensor: Tensor, sizes: Sequence[int] | None, group: Any) -> list[int]:
    """Return the bytes of each rank's rows of a tensor, of which each has as many where no sizes
    are given. Raises ValueError where they do not add up."""
    rows, world_size = (tensor.shape[0] if tensor.dim() else 1), dist.get_world_size(group)
    if not sizes and rows % world_size:
        raise ValueError(f"{rows} rows do not divide equally among {world_size} ranks")
    sizes = sizes or [rows // world_size] * world_size
    if sum(sizes) != rows:
        raise ValueError(f"split sizes {list(sizes)} do not add up to {rows} rows")
    return [int(size) * (tensor.nbytes // rows) if rows else 0 for size in sizes]


def reduced(tensor: Tensor, op: Any, group: Any) -> Tensor:
    """Return what all ranks' tensors of the group come to, in host memory."""
    own, is_mean = _on_host(tensor), op == dist.ReduceOp.AVG
    kind = dist.ReduceOp.SUM if is_mean else op
    if own.dtype is torch.bool and kind == dist.ReduceOp.SUM:
        kind = dist.ReduceOp.MAX
    total = torch.view_as_real(own) if own.is_complex() else own
    is_small_float = own.is_floating_point() and own.itemsize == 1
    total = total.to(torch.float32 if is_small_float else _WIDER.get(own.dtype, total.dtype))
    originals.all_reduce(total, kind, group=group)
    if is_mean:
        count = dist.get_world_size(group)
        total = total / count if total.is_floating_point() else total // count
    return (torch.view_as_complex(total) if own.is_complex() else total).to(own.dtype)


def rank_in_group(rank: int | None, group_rank: int | None, group: Any) -> int:
    """Return the number in the group of a rank that is given by either of its numbers."""
    if group_rank is not None:
        return group_rank
    is_world = group is None or group is dist.group.WORLD
    return (rank or 0) if is_world else dist.get_group_rank(group, rank or 0)


def refuse_capture() -> None:
    """Raise RuntimeError inside a CUDA graph, which host memory has no part in."""
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError(NO_CAPTURE)


def _on_host(tensor: Tensor) -> Tensor:
    if tensor.is_cuda:
        refuse_capture()
    value = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return value.to("cpu", copy=True)
