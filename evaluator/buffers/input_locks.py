"""Locks the inputs of a timed batch so that they open one after the other, each with the answer
before.

All inputs of a batch lie in the slab when its clock starts, so a submission could compute several
calls as one. Therefore words of the inputs of every call but the first are scrambled with a key of
64 bits, which the answer of the call before spells: whether each of some secret elements of it lies
above a threshold near it. Every rank undoes that on its own stream, as a part of the call. Nothing
here is hidden from a submission: without the answer the key cannot be had.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.buffers import cuda_kernel
from evaluator.buffers.scrambling import DTYPES, SOURCE, Span, key_of, key_stream, signed
from evaluator.buffers.slab import Place
from evaluator.timing.timing import LOCK_PLACES, LOCKED_WORDS
from problems.comparison import rms
from problems.spec import Tolerance
from problems.thresholds import distances, usable

SPAN_BYTES = 64 << 20
_SAMPLE = 1 << 16

Chain = dict[str, Any]  # JSON for a rank: how the calls of a batch open


def span_over(places: tuple[Place, ...]) -> Span | None:
    """Return the bytes from the first input to the last, with the guard bands between, or as many
    of them as are enough; None without inputs."""
    filled = [place for place in places if place.nbytes]
    if not filled:
        return None
    offset = min(place.offset for place in filled)
    nbytes = max(place.offset + place.nbytes for place in filled) - offset
    total = min(nbytes, SPAN_BYTES) // 8
    step = max(1, total // LOCKED_WORDS)
    return Span(offset=offset, count=total // step, step=step) if total else None


@dataclass(frozen=True, kw_only=True)
class InputLock:
    """Holds what a key scrambles, the key, and all that a rank is told."""

    span: Span
    key: int
    node: dict[str, Any]

    def write(self, slab: torch.Tensor, inputs: Iterable[tuple[int, torch.Tensor]]) -> None:
        """Write inputs, each bytes (uint8) and their offset, which nobody may see before they are
        scrambled."""
        start, end = self.span.offset, self.span.end
        own = slab[start:end].clone()  # with its guard bands
        for offset, value in inputs:
            inside = max(0, min(len(value), end - offset))
            own[offset - start : offset - start + inside] = value[:inside]
            slab[offset + inside : offset + len(value)] = value[inside:]
        words = self.span.words(own)
        words ^= key_stream(torch.tensor(self.key, device=words.device), len(words))
        slab[start:end] = own


def make_lock(
    span: Span | None, answers: list[tuple[Place, torch.Tensor]], tolerance: Tolerance
) -> InputLock | None:
    """Return a lock of a span that opens with the largest of some answers, each of which tells a
    rank what it cannot know alone (`problems.guards`); None where there is nothing to lock, or
    where no answer has enough elements that nobody can guess."""
    known = [(place, truth) for place, truth in answers if place.dtype in DTYPES]
    place, truth = max(known, key=lambda one: one[1].numel(), default=(None, None))
    if span is None or place is None or truth is None or truth.numel() < LOCK_PLACES:
        return None
    flat = truth.detach().reshape(-1)
    sample = flat
    if len(flat) > _SAMPLE:
        sample = flat[torch.randint(len(flat), (_SAMPLE,), device=flat.device)]
    usual = rms(sample)
    drawn = _drawn(4 * LOCK_PLACES, len(flat)).to(flat.device)
    drawn = drawn[usable(flat[drawn].double(), usual)][:LOCK_PLACES]
    if len(drawn) < LOCK_PLACES:
        return None
    values = flat[drawn].double()
    farther = distances(values, tolerance, usual)
    above = _random(LOCK_PLACES).to(flat.device) % 2 == 0
    thresholds = torch.where(above, values - farther, values + farther)
    node = {
        "answer": place.node(),
        "elements": _text(drawn),
        "thresholds": _text(thresholds),
        "span": [span.offset, span.count, span.step],
    }
    return InputLock(span=span, key=int(key_of(above)), node=node)


def kernel_for(device: torch.device) -> str:
    """Return what ranks on such a device run to open locks: PTX, or nothing on a processor."""
    return cuda_kernel.compiled(SOURCE, device) if device.type == "cuda" else ""


def _drawn(count: int, total: int) -> torch.Tensor:
    """Draw at most so many numbers below `total`, of a few none twice: int64, [count or less]. Two
    thresholds of one element would tell on which sides they lie."""
    few = total <= 8 * count
    return _random(total).argsort()[:count] if few else _random(count).remainder(total)


def _random(count: int) -> torch.Tensor:
    """Draw numbers that nobody can foresee: int64, not negative, [count]."""
    drawn = torch.frombuffer(bytearray(os.urandom(8 * count)), dtype=torch.int64)
    return drawn & signed((1 << 63) - 1)


def _text(numbers: torch.Tensor) -> str:
    return base64.b64encode(numbers.cpu().numpy().tobytes()).decode()
