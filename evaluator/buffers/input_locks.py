"""Inputs of a burst that open one after the other: each only with the answer of the call before.

All inputs of a burst lie in the slab when its clock starts, so a submission could compute several
calls as one. Therefore words of the inputs of every call but the first are scrambled with a key of
64 bits, which the answer of the call before spells: whether each of some secret elements of it lies
above a threshold near it. Every rank undoes that on its own stream, as a part of the call. Nothing
here is hidden from a submission: without the answer the key cannot be had.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from evaluator.buffers import cuda_kernel
from evaluator.buffers.memory import Memory
from evaluator.buffers.slab import Place
from evaluator.timing.timing import LOCK_PLACES, LOCKED_WORDS
from problems.comparison import limits, rms
from problems.spec import Tolerance

SPAN_BYTES = 64 << 20
FARTHER = 4.0  # than the tolerance lets an answer be from the truth
_SMALL = 0.1  # of the root mean square: less may be an element that is always zero
_SAMPLE = 1 << 16
_LEAST_SHARE = 2.0**-10
_DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BLOCK = 256

# What `_key` and `_stream` compute, in one launch: a lock's cost is part of every call.
_SOURCE = f"""
typedef unsigned long long u64;
__device__ u64 mixed(u64 x) {{
  x = (x ^ (x >> 30)) * {_FIRST}ull;
  x = (x ^ (x >> 27)) * {_SECOND}ull;
  return x ^ (x >> 31);
}}
__device__ double element(const void *answer, int dtype, long long at) {{
  if (dtype == 3) return ((const double *)answer)[at];
  if (dtype == 2) return ((const float *)answer)[at];
  unsigned short bits = ((const unsigned short *)answer)[at];
  float wide;
  if (dtype == 1) asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
  else wide = __uint_as_float((unsigned int)bits << 16);
  return wide;
}}
extern "C" __global__ void open_lock(const void *answer, long long dtype, const long long *elements,
    const double *thresholds, u64 *words, long long count, long long step) {{
  __shared__ u64 key;
  if (threadIdx.x == 0) key = 0;
  __syncthreads();
  unsigned int place = threadIdx.x;
  if (place < {LOCK_PLACES} && element(answer, dtype, elements[place]) > thresholds[place])
    atomicAdd(&key, mixed(place + 1));
  __syncthreads();
  u64 word = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (word < count) words[word * step] ^= mixed(key + (word + 1) * {_GOLDEN}ull);
}}
"""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Bytes of a slab from `offset` on: `count` times `step` words of eight bytes, of each step of
    which the first is scrambled."""

    offset: int
    count: int
    step: int

    @classmethod
    def over(cls, places: tuple[Place, ...]) -> Span | None:
        """From the first input to the last, with the guard bands between, or as many bytes of that
        as are enough; None without inputs."""
        filled = [place for place in places if place.nbytes]
        if not filled:
            return None
        offset = min(place.offset for place in filled)
        nbytes = max(place.offset + place.nbytes for place in filled) - offset
        total = min(nbytes, SPAN_BYTES) // 8
        step = max(1, total // LOCKED_WORDS)
        return cls(offset=offset, count=total // step, step=step) if total else None

    @property
    def end(self) -> int:
        return self.offset + 8 * self.count * self.step

    def covers(self, offsets: torch.Tensor) -> bool:
        """Whether all these bytes of the slab are of words that are scrambled."""
        words = (offsets - self.offset) // 8
        is_inside = (offsets >= self.offset) & (offsets < self.end)
        return bool((is_inside & (words % self.step == 0)).all())

    def words(self, own: torch.Tensor) -> torch.Tensor:
        """The words to scramble, int64 [count], of the span's own bytes, uint8."""
        return own.view(torch.int64)[:: self.step]


@dataclass(frozen=True, kw_only=True)
class Lock:
    """The judge's side: what a key scrambles, and all that a rank is told."""

    span: Span
    key: int
    node: dict[str, Any]

    def write(self, slab: torch.Tensor, inputs: Iterable[tuple[int, torch.Tensor]]) -> None:
        """Write inputs, each bytes and their offset, which nobody may see before they are
        scrambled."""
        start, end = self.span.offset, self.span.end
        own = slab[start:end].clone()  # with its guard bands
        for offset, value in inputs:
            inside = max(0, min(len(value), end - offset))
            own[offset - start : offset - start + inside] = value[:inside]
            slab[offset + inside : offset + len(value)] = value[inside:]
        words = self.span.words(own)
        words ^= _stream(torch.tensor(self.key, device=words.device), len(words))
        slab[start:end] = own


def make_lock(
    span: Span | None, answers: list[tuple[Place, torch.Tensor]], tolerance: Tolerance
) -> Lock | None:
    """Lock a span by the largest of some answers; None where there is nothing to lock, or where no
    answer has enough elements that nobody can guess."""
    known = [(place, truth) for place, truth in answers if place.dtype in _DTYPES]
    place, truth = max(known, key=lambda one: one[1].numel(), default=(None, None))
    if span is None or place is None or truth is None or truth.numel() < LOCK_PLACES:
        return None
    flat = truth.detach().reshape(-1)
    usual = rms(flat[torch.randint(len(flat), (_SAMPLE,), device=flat.device)])
    drawn = _drawn(4 * LOCK_PLACES, len(flat)).to(flat.device)
    values = flat[drawn].double()
    drawn = drawn[values.isfinite() & (values.abs() > _SMALL * usual)][:LOCK_PLACES]
    if len(drawn) < LOCK_PLACES:
        return None
    values = flat[drawn].double()
    allowed = limits(values, tolerance, 1.0 if tolerance.absolute else usual)
    farther = torch.maximum(FARTHER * allowed, _LEAST_SHARE * values.abs())
    above = _random(LOCK_PLACES).to(flat.device) % 2 == 0
    thresholds = torch.where(above, values - farther, values + farther)
    node = {
        "answer": place.node(),
        "elements": _text(drawn),
        "thresholds": _text(thresholds),
        "span": [span.offset, span.count, span.step],
    }
    return Lock(span=span, key=int(_key(above)), node=node)


def opener(slab: Memory, node: dict[str, Any], kernel: str) -> Callable[[], None]:
    """A rank's side: what undoes a lock, on the stream that the call before was made on."""
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
            grid=-(-count // _BLOCK),
            block=_BLOCK,
            arguments=(answer, _DTYPES.index(dtype), elements, thresholds, words, count, step),
            device=slab.device.index,
        )

    def open_lock() -> None:
        above = answer[elements].double() > thresholds
        words.bitwise_xor_(_stream(_key(above), count))

    return open_lock


def kernel_for(device: torch.device) -> str:
    """What ranks on such a device run to open locks: PTX, or nothing on a processor."""
    return cuda_kernel.compiled(_SOURCE, device) if device.type == "cuda" else ""


def _key(above: torch.Tensor) -> torch.Tensor:
    """The sum of a constant for each place that is above its threshold: int64, []."""
    return torch.where(above, _weights(above.device), 0).sum()


def _stream(key: torch.Tensor, count: int) -> torch.Tensor:
    """What a key scrambles words with: int64, [count]."""
    return _mixed(key + _counters(count, key.device))


@cache
def _weights(device: torch.device) -> torch.Tensor:
    return _mixed(torch.arange(1, LOCK_PLACES + 1, device=device))


@cache
def _counters(count: int, device: torch.device) -> torch.Tensor:
    return torch.arange(1, count + 1, device=device) * _signed(_GOLDEN)


def _mixed(x: torch.Tensor) -> torch.Tensor:
    """Each bit depends on all bits of x: the finalizer of SplitMix64 (Steele et al., 2014)."""
    x = (x ^ _shifted(x, 30)) * _signed(_FIRST)
    x = (x ^ _shifted(x, 27)) * _signed(_SECOND)
    return x ^ _shifted(x, 31)


def _shifted(x: torch.Tensor, bits: int) -> torch.Tensor:
    """To the right, zeros from the left."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _drawn(count: int, total: int) -> torch.Tensor:
    """At most so many numbers below `total`, of a few none twice: two thresholds of one element
    would tell on which sides they lie. int64, [count or less]."""
    few = total <= 8 * count
    return _random(total).argsort()[:count] if few else _random(count).remainder(total)


def _random(count: int) -> torch.Tensor:
    """Numbers that nobody can foresee: int64, not negative, [count]."""
    drawn = torch.frombuffer(bytearray(os.urandom(8 * count)), dtype=torch.int64)
    return drawn & _signed((1 << 63) - 1)


def _text(numbers: torch.Tensor) -> str:
    return base64.b64encode(numbers.cpu().numpy().tobytes()).decode()


def _numbers(text: str, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype).to(device)
