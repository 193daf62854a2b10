"""Scrambles words of the inputs of a call with a key of 64 bits, and back: the same on both sides.

The key is the sum of a constant for each of some elements of another answer that lies above its
threshold; a word is combined by exclusive or with the word of its number of a stream, two rounds of
SplitMix64's finalizer (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014) between which and after which the key is added again: one round can be undone, and a
word that is known would tell the key. On a GPU both steps are one launch: its cost is part of every
call.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch

from evaluator.timing.timing import LOCK_PLACES

DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
BLOCK = 256
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

# What follows a call, as `finish_call` is told it: where the outputs belong and their bytes, then
# of the lock that they open the answer's output (or -1 and its address), dtype, words, their number
# and step, then elements and thresholds.
MOST_OUTPUTS = 8
LOCK_WORD = 2 * MOST_OUTPUTS + 6
CALL_WORDS = LOCK_WORD + 2 * LOCK_PLACES

# In one launch, as it is a part of every call: the first `openers` blocks open the inputs of the
# next call as `key_of` and `key_stream` do, or with a mask of zero bits write them as they are; the
# others copy outputs to where they belong.
SOURCE = f"""
typedef unsigned long long u64;
struct Given {{ u64 sources[{MOST_OUTPUTS}]; const long long *call; u64 openers, mask; }};
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
__device__ void open_lock(const Given &given) {{
  const long long *lock = given.call + {2 * MOST_OUTPUTS};
  const void *answer = (const void *)(lock[0] < 0 ? lock[1] : given.sources[lock[0]]);
  const long long *elements = given.call + {LOCK_WORD};
  const double *thresholds = (const double *)(elements + {LOCK_PLACES});
  __shared__ u64 key;
  if (threadIdx.x == 0) key = 0;
  __syncthreads();
  unsigned int place = threadIdx.x;
  if (place < {LOCK_PLACES}) {{
    double threshold = thresholds[place];
    u64 part = element(answer, lock[2], elements[place]) > threshold ? mixed(place + 1) : 0;
    for (int far = 16; far; far /= 2) part += __shfl_down_sync(~0u, part, far);
    if (place % 32 == 0) atomicAdd(&key, part);
  }}
  __syncthreads();
  u64 word = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = lock[5];
  u64 *words = (u64 *)lock[3];
  u64 stream = mixed(mixed(key + (word + 1) * {_GOLDEN}ull) ^ key) + key;
  if (word < lock[4]) words[word * step] ^= stream & given.mask;
}}
__device__ void copy(char *to, const char *from, u64 nbytes, u64 first, u64 step) {{
  for (u64 at = first; at < nbytes / 16; at += step) ((uint4 *)to)[at] = ((const uint4 *)from)[at];
  for (u64 at = nbytes / 16 * 16 + first; at < nbytes; at += step) to[at] = from[at];
}}
extern "C" __global__ void finish_call(Given given) {{
  if (blockIdx.x < given.openers) {{
    open_lock(given);
    return;
  }}
  const long long *nbytes = given.call + {MOST_OUTPUTS};
  u64 first = (u64)(blockIdx.x - given.openers) * blockDim.x + threadIdx.x;
  u64 step = (u64)(gridDim.x - given.openers) * blockDim.x;
  for (int at = 0; at < {MOST_OUTPUTS}; at++)
    copy((char *)given.call[at], (const char *)given.sources[at], nbytes[at], first, step);
}}
"""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Describes bytes of a slab from `offset` on: `count` times `step` words of eight bytes, of
    each step of which the first is scrambled."""

    offset: int
    count: int
    step: int

    @property
    def end(self) -> int:
        """Return the offset behind the last byte."""
        return self.offset + 8 * self.count * self.step

    def covers(self, offsets: torch.Tensor) -> bool:
        """Return whether all these bytes of the slab (int64, offsets) are of words that are
        scrambled."""
        words = (offsets - self.offset) // 8
        is_inside = (offsets >= self.offset) & (offsets < self.end)
        return bool((is_inside & (words % self.step == 0)).all())

    def words(self, own: torch.Tensor) -> torch.Tensor:
        """Return the words to scramble, int64 [count], of the span's own bytes, uint8."""
        return own.view(torch.int64)[:: self.step]


def key_of(above: torch.Tensor) -> torch.Tensor:
    """Return the sum of a constant for each place that is above its threshold: int64, []."""
    return torch.where(above, _weights(above.device), 0).sum()


def key_stream(key: torch.Tensor, count: int) -> torch.Tensor:
    """Return what a key scrambles words with: int64, [count]."""
    return _mixed(_mixed(key + _counters(count, key.device)) ^ key) + key


@cache
def _weights(device: torch.device) -> torch.Tensor:
    return _mixed(torch.arange(1, LOCK_PLACES + 1, device=device))


@cache
def _counters(count: int, device: torch.device) -> torch.Tensor:
    return torch.arange(1, count + 1, device=device) * signed(_GOLDEN)


def _mixed(x: torch.Tensor) -> torch.Tensor:
    """Mix words so that each bit depends on all bits of x: the finalizer of SplitMix64."""
    x = (x ^ _shifted(x, 30)) * signed(_FIRST)
    x = (x ^ _shifted(x, 27)) * signed(_SECOND)
    return x ^ _shifted(x, 31)


def _shifted(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Shift to the right, with zeros from the left."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def signed(number: int) -> int:
    """Return the number of 64 bits as torch's int64 holds it."""
    return number - (1 << 64) if number >> 63 else number
