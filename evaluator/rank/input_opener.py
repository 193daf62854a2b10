"""Opens the inputs of a call with the answer of the call before, on the rank's own stream."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import torch

from evaluator.buffers import cuda_kernel
from evaluator.buffers.memory import Memory
from evaluator.buffers.scrambling import BLOCK, DTYPES, Span, key_of, key_stream


def input_opener(slab: Memory, node: dict[str, Any], kernel: str) -> Callable[[], None]:
    """Return what undoes a lock, on the stream that the call before was made on. `node` and
    `kernel` are what the judge tells of it."""
    place, (offset, count, step) = node["answer"], node["span"]
    dtype = getattr(torch, place["dtype"])
    answer = slab.tensor(place["offset"], tuple(place["shape"]), dtype).reshape(-1)
    elements = _numbers(node["elements"], torch.int64, slab.device)
    thresholds = _numbers(node["thresholds"], torch.float64, slab.device)
    span = Span(offset=offset, count=count, step=step)
    words = span.words(slab.tensor(offset, (span.end - offset,), torch.uint8))
    if slab.device.type == "cuda":
        return cuda_kernel.launcher(
            cuda_kernel.load(kernel, "open_lock"),
            grid=-(-count // BLOCK),
            block=BLOCK,
            arguments=(answer, DTYPES.index(dtype), elements, thresholds, words, count, step),
            device=slab.device.index,
        )

    def open_lock() -> None:
        above = answer[elements].double() > thresholds
        words.bitwise_xor_(key_stream(key_of(above), count))

    return open_lock


def _numbers(text: str, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype).to(device)
