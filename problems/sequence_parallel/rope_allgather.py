"""Rotary embedding of queries and keys on sequence shards, then an all-gather of both."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=17,
    title="Rotary embedding + all-gather along the sequence",
    source="huggingface/transformers",
    domain="LLM training",
    summary="Rotate this rank's queries and keys by position and gather both over the sequence.",
    statement="Every rank of the default process group holds S consecutive positions of a "
    "sequence that is sharded over the W ranks: queries q_local and keys k_local, [B, S, heads, "
    "D] with D even, and tables cos_local and sin_local, [B, S, D], all of one dtype. With "
    "rot(x) = concat(-x[..., D/2:], x[..., :D/2]) along the last axis, rotate x, which is "
    "q_local or k_local, to x * cos_local + rot(x) * sin_local, each table entry serving all "
    "heads of its position. Both products and the sum may round to the inputs' dtype. Return a "
    "tuple (q, k) of two new contiguous tensors [B, W*S, heads, D] of that dtype, the same on "
    "every rank: positions r*S to (r+1)*S-1 are those of rank r. Tables hold any numbers: their "
    "halves need not agree, nor cos^2 + sin^2 be 1. All ranks agree on shapes and dtype; B and "
    "S may be any positive integers, heads is 8 and D is 64. The arguments must stay as they "
    "are.",
    outputs=("q", "k"),
    also=("Context Parallel",),
    sizes=sizes(tiny=(256, 512), large=(4096, 32768)),
    tolerances=tolerances(float32=1e-5, bfloat16=3e-2, float16=4e-3, rms={"bfloat16": 0.08}),
    tolerance_reason="products of opposite sign may each round to the run dtype before they "
    "cancel (bfloat16: 0.013 measured, float16: 0.0018); float32 rejects inputs rounded to tf32 "
    "(0.0015), 16 bits reject inputs in fp8 (0.2); "
    "the rms of honest answers in bfloat16 is 0.045 at most, over int8 wires 0.13 or more",
    known_issues=(
        "PKB's atol 1e-2 rejects a few elements of a kernel that fuses the products and the sum "
        "in float32, where they cancel in bfloat16.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    seq = max(1, n // 64 // world_size)
    return Dims(m=m, n=n, batch=max(1, m // 64), seq=seq, heads=8, depth=64)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {
        "q_local": ctx.randn(d.batch, d.seq, d.heads, d.depth),
        "k_local": ctx.randn(d.batch, d.seq, d.heads, d.depth),
        "cos_local": ctx.randn(d.batch, d.seq, d.depth),
        "sin_local": ctx.randn(d.batch, d.seq, d.depth),
    }


def _along_sequence(shard: torch.Tensor) -> torch.Tensor:
    world, (batch, seq, *rest) = dist.get_world_size(), shard.shape
    shards = shard.new_empty(world * batch, seq, *rest)
    dist.all_gather_into_tensor(shards, shard)
    return shards.view(world, batch, seq, *rest).transpose(0, 1).reshape(batch, -1, *rest)


def reference(
    q_local: torch.Tensor,
    k_local: torch.Tensor,
    cos_local: torch.Tensor,
    sin_local: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    cos, sin = cos_local.unsqueeze(2), sin_local.unsqueeze(2)

    def rotated(x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-second, first], dim=-1) * sin

    q, k = rotated(q_local), rotated(k_local)
    return _along_sequence(q), _along_sequence(k)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    tables = d.batch * d.seq * d.depth
    shards = 2 * d.heads * tables
    return Cost(
        wire_bytes=all_gather_bytes(shards * itemsize, world_size),
        flops=3 * shards,
        hbm_bytes=(2 * tables + (1 + world_size) * shards) * itemsize,
    )
