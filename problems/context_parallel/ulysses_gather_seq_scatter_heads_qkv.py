"""Ulysses before attention, for queries, keys and values packed in one tensor."""

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=38,
    title="Ulysses: gather the sequence, scatter the heads of packed QKV",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="Re-shard packed Q, K and V from sequence to heads in one exchange.",
    statement="qkv_tensor is this rank's part of a sequence, 3-D and contiguous: dimension "
    "seq_dim, which is 0 or 1, has T positions, the other of the first two is the batch, and the "
    "last one packs P columns each of queries, keys and values, in this order. Ranks hold "
    "consecutive parts of equal length and agree on every argument but the values of qkv_tensor. "
    "The W ranks of group (None means the default process group) deal the columns out: with c = "
    "P/W, rank r needs columns r*c to (r+1)*c-1 of the queries, the same of the keys and the "
    "same of the values, for the whole sequence. Return them with dimension seq_dim grown to W*T "
    "positions, those of rank 0 first, and the last dimension packed as before, 3*c wide; if "
    "restore_shape is False leave it unpacked as two dimensions [3, c], a 4-D tensor. If "
    "unpadded_dim_size is neither None nor 0 nor a multiple of W, keep only the first "
    "unpadded_dim_size <= W*T positions. The result is a new contiguous tensor; qkv_tensor must "
    "stay as it is. P is 512; all other sizes, seq_dim, unpadded_dim_size and restore_shape may "
    "differ from call to call.",
    outputs=("qkv",),
    also=("Sequence Parallel",),
    m_step=64,
    n_step=64,
    sizes=sizes(tiny=(256, 512), large=(16384, 8192)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
    known_issues=("PKB never drops padding and always restores the shape.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, batch=max(1, m // 64), seq=max(1, n // 64), columns=512)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    seq_dim, whole = ctx.choose(1, (1, 0)), ctx.world_size * d.seq
    leading = (d.batch, d.seq) if seq_dim else (d.seq, d.batch)
    return {
        "qkv_tensor": ctx.randn(*leading, 3 * d.columns),
        "seq_dim": seq_dim,
        "group": None,
        "unpadded_dim_size": ctx.choose(None, (None, whole - 1, whole - ctx.world_size)),
        "restore_shape": ctx.choose(True, (True, False)),
    }


def reference(
    qkv_tensor: torch.Tensor,
    seq_dim: int,
    group: dist.ProcessGroup | None = None,
    unpadded_dim_size: int | None = None,
    restore_shape: bool = True,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    pieces = torch.unflatten(qkv_tensor, -1, (3, world, -1)).movedim(-2, 0).contiguous()
    received = torch.empty_like(pieces)
    dist.all_to_all_single(received, pieces, group=group)
    qkv = received.movedim(0, seq_dim).flatten(seq_dim, seq_dim + 1)
    if unpadded_dim_size and unpadded_dim_size % world:
        qkv = qkv.narrow(seq_dim, 0, unpadded_dim_size)
    return (qkv.flatten(-2) if restore_shape else qkv).contiguous()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    full = d.batch * d.seq * 3 * d.columns * itemsize
    return Cost(
        wire_bytes=all_to_all_bytes(full, world_size),
        flops=0,
        hbm_bytes=2 * full,
    )
