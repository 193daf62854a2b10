"""Seal the inputs of a timed call, and commit to its outputs: the same on both sides.

Sealed inputs lie in the slab combined by exclusive or with a stream of a secret key of 64 bits, so
nothing of them is known before the judge writes the key. A word of the stream is two rounds of
SplitMix64's finalizer (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014) of the word's number in the slab, between which and after which the key is added again:
one round can be undone, and a word that is known would tell the key.

A commitment is a hash: LANES chains of 128 bits over the words of all outputs, joined by a tree and
folded to 64 bits. A tolerance leaves bits of outputs free, so sums would not do: whoever has told a
sum finds outputs that fit it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from evaluator.buffers import control_page as page

Ranges = list[tuple[int, int]]  # where tensors lie in a slab: offset and length in bytes

WORD, CHUNK_BYTES, BLOCK = 8, 64 << 20, 256
LANES = BLOCK * BLOCK
OWN_WORDS = 2 + 2 * BLOCK  # of a rank: its key, a count, and the state of each block
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
ALL_BITS = (1 << 64) - 1

# A kernel of one thread waits for the gate: a stream's own semaphore would do, but a GPU takes some
# 140 us to return to a context that waits for one (benchmarks/gate.py). Offsets are multiples of
# 256, and a guard band follows each range, so its last word may be read whole.
SOURCE = f"""
typedef unsigned long long u64;
struct Given {{ volatile u64 *page; u64 *own; char *slab; const u64 *ranges; u64 count, number; }};
__device__ u64 mixed(u64 x) {{
  x = (x ^ (x >> 30)) * {_FIRST}ull;
  x = (x ^ (x >> 27)) * {_SECOND}ull;
  return x ^ (x >> 31);
}}
__device__ u64 stream(u64 key, u64 word) {{
  return mixed(mixed(key + (word + 1) * {_GOLDEN}ull) ^ key) + key;
}}
extern "C" __global__ void wait_at_gate(Given given) {{
  u64 key, gate, *at = (u64 *)given.page + {page.KEY};
  do asm volatile("ld.volatile.global.v2.u64 {{%0, %1}}, [%2];" : "=l"(key), "=l"(gate) : "l"(at));
  while (gate < given.number);
  given.own[0] = key;
  given.own[1] = 0;
}}
extern "C" __global__ void open_inputs(Given given) {{
  u64 key = given.own[0], first = blockIdx.x * blockDim.x + threadIdx.x;
  u64 step = gridDim.x * blockDim.x;
  for (u64 at = 0; at < given.count; at++) {{
    u64 offset = given.ranges[2 * at], nbytes = given.ranges[2 * at + 1], word = offset / 8;
    ulonglong2 *pairs = (ulonglong2 *)(given.slab + offset);
    for (u64 i = first; i < nbytes / 16; i += step) {{
      ulonglong2 pair = pairs[i];
      pair.x ^= stream(key, word + 2 * i);
      pair.y ^= stream(key, word + 2 * i + 1);
      pairs[i] = pair;
    }}
    for (u64 i = nbytes / 16 * 16 + first; i < nbytes; i += step)
      given.slab[offset + i] ^= (char)(stream(key, word + i / 8) >> (8 * (i % 8)));
  }}
}}
struct State {{ u64 one, other; }};
__device__ void absorb(State &state, u64 word) {{
  state.one = mixed(state.one ^ word) + state.other;
  state.other = mixed(state.other ^ state.one) + word;
}}
__device__ State joined(State *states, State mine) {{
  unsigned int lane = threadIdx.x;
  states[lane] = mine;
  for (unsigned int far = {BLOCK} / 2; far; far /= 2) {{
    __syncthreads();
    if (lane < far) {{
      absorb(states[lane], states[lane + far].one);
      absorb(states[lane], states[lane + far].other);
    }}
  }}
  __syncthreads();
  return states[0];
}}
extern "C" __global__ void commit(Given given) {{
  __shared__ State states[{BLOCK}];
  __shared__ bool is_last;
  u64 key = given.own[0], lane = blockIdx.x * blockDim.x + threadIdx.x;
  State state;
  state.one = mixed(key + (lane + 1) * {_GOLDEN}ull);
  state.other = mixed(state.one ^ key);
  for (u64 at = 0; at < given.count; at++) {{
    const u64 *words = (const u64 *)(given.slab + given.ranges[2 * at]);
    u64 count = (given.ranges[2 * at + 1] + 7) / 8;
#pragma unroll 4
    for (u64 i = lane; i < count; i += {LANES}) absorb(state, words[i]);
  }}
  state = joined(states, state);
  State *blocks = (State *)(given.own + 2);
  if (threadIdx.x == 0) {{
    blocks[blockIdx.x] = state;
    __threadfence();
    is_last = atomicAdd(&given.own[1], 1) + 1 == gridDim.x;
  }}
  __syncthreads();
  if (!is_last) return;
  State none = {{0, 0}};
  volatile u64 *theirs = (volatile u64 *)(blocks + threadIdx.x);
  if (threadIdx.x < gridDim.x) none = State{{theirs[0], theirs[1]}};
  state = joined(states, none);
  if (threadIdx.x) return;
  u64 digest = mixed(state.one ^ mixed(state.other + key)) + state.other;
  u64 *at = (u64 *)given.page + {page.COMMITMENT};
  asm volatile("st.volatile.global.v2.u64 [%0], {{%1, %2}};"
               :: "l"(at), "l"(digest), "l"(given.number));
}}
"""


def seal(to: torch.Tensor, plain: torch.Tensor, offset: int, key: int) -> None:
    """Write bytes (uint8, [nbytes]) that nobody can read without the key, and that belong at an
    offset of a slab."""
    for start in range(0, len(plain), CHUNK_BYTES):
        part = plain[start : start + CHUNK_BYTES]
        padded = torch.zeros(-(-len(part) // WORD) * WORD, dtype=torch.uint8, device=part.device)
        padded[: len(part)] = part
        words = padded.view(torch.int64)
        words ^= key_stream(key, (offset + start) // WORD, len(words), words.device)
        to[start : start + len(part)] = padded[: len(part)]


def unseal(slab: torch.Tensor, ranges: Ranges, key: int) -> None:
    """Make sealed bytes readable."""
    for offset, nbytes in ranges:
        sealed = slab[offset : offset + nbytes]
        seal(sealed, sealed.clone(), offset, key)


def commit_blocks(ranges: Iterable[tuple[int, int]]) -> int:
    """Return how many blocks of lanes the words of these ranges fill, 1 at least."""
    longest = max((nbytes for _, nbytes in ranges), default=0)
    return max(1, min(BLOCK, -(-longest // (WORD * BLOCK))))


def commitment(slab: torch.Tensor, ranges: Sequence[tuple[int, int]], key: int) -> int:
    """Return the 64 bits that commit to the bytes of these ranges."""
    blocks, own = commit_blocks(ranges), signed(key)
    one = _mixed(_numbers(0, blocks * BLOCK, slab.device) + own)
    states = torch.stack([one, _mixed(one ^ own)])
    for offset, nbytes in ranges:
        end = offset + -(-nbytes // WORD) * WORD
        words = slab[offset:end].view(torch.int64)
        for start in range(0, len(words), LANES):
            part = words[start : start + LANES]
            states[:, : len(part)] = _absorbed(states[:, : len(part)], part)
    states = _joined(states.view(2, blocks, BLOCK))
    padded = states.new_zeros(2, BLOCK)
    padded[:, :blocks] = states
    one, other = _joined(padded)
    return int(_mixed(one ^ _mixed(other + own)) + other) & ALL_BITS


def _absorbed(states: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Return what states become that absorb a word each: int64, [2, lanes]."""
    one = _mixed(states[0] ^ words) + states[1]
    return torch.stack([one, _mixed(states[1] ^ one) + words])


def _joined(states: torch.Tensor) -> torch.Tensor:
    """Join BLOCK states along the last dimension by a tree: int64, [2, ...]."""
    while (far := states.shape[-1] // 2) > 0:
        left, right = states[..., :far], states[..., far:]
        for words in right:
            left = _absorbed(left, words)
        states = left
    return states[..., 0]


def key_stream(key: int, first: int, count: int, device: torch.device) -> torch.Tensor:
    """Return the key's words for `count` words of a slab from number `first` on: int64, [count]."""
    own = signed(key)
    return _mixed(_mixed(_numbers(first, count, device) + own) ^ own) + own


def _numbers(first: int, count: int, device: torch.device) -> torch.Tensor:
    """Return a constant times each word's number, counted from 1: int64, [count]."""
    return torch.arange(first + 1, first + count + 1, device=device) * signed(_GOLDEN)


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
