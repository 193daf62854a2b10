"""Names that published ParallelKittens kernels import: tensors that every rank can reach, kept.

A kernel's compiled extension brings `TKParallelTensor` along, from ThunderKittens' headers. What is
here makes one for each shape and returns it again at the next call. Making one is collective:
every rank has to ask for the same at the same point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

NUM_DEVICES = 8
BARRIER_ELEMS = 64

# The extension is part of the value too: its id must not be given to another while it is a key.
_kept: dict[tuple[Any, ...], tuple[Any, Any]] = {}


def create_parallel_tensor(
    ext: Any,
    shape: Sequence[int],
    dtype: torch.dtype = torch.bfloat16,
    *,
    multicast: bool = True,
) -> Any:
    """Make a TKParallelTensor of the extension; its `data_` is this rank's part, of `shape`.
    Collective."""
    lengths = [int(length) for length in shape]
    return ext.TKParallelTensor(lengths, dtype, dist.get_rank(), dist.get_world_size(), multicast)


def get_or_create_parallel_tensor(
    ext: Any,
    shape: Sequence[int],
    dtype: torch.dtype = torch.bfloat16,
    *,
    multicast: bool = True,
) -> Any:
    """Return the one TKParallelTensor of this extension, shape, dtype and kind. Collective."""
    key = (id(ext), tuple(int(length) for length in shape), dtype, bool(multicast))
    if key not in _kept:
        _kept[key] = (ext, create_parallel_tensor(ext, shape, dtype, multicast=multicast))
    return _kept[key][1]


def get_or_create_barrier(ext: Any, *, num_devices: int = NUM_DEVICES) -> Any:
    """Return the one barrier of this many devices: int32, [BARRIER_ELEMS], multicast.
    Collective."""
    key = ("barrier", int(num_devices))
    if key not in _kept:
        _kept[key] = (ext, create_parallel_tensor(ext, [BARRIER_ELEMS], torch.int32))
    return _kept[key][1]
