"""Attention over ranges of tokens, re-sharded to heads range by range while the last one runs."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes, all_to_all_bytes
from problems.context import RankContext
from problems.faint_tokens import lots, with_faint
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=77,
    title="Context-shuffle-overlap attention (Ulysses-style, range by range, overlapped)",
    source="SandAI-org/MAGI-1",
    domain="Vision models",
    summary="Exact attention over token ranges, exchanged range by range during the attention.",
    statement="The W ranks of group (None means the default process group) share a video of R = "
    "cp_shuffle_num ranges, W*P tokens each. query is [R*P, Hq, D] and key_value [R*P, Hkv, 2*D], "
    "keys before values: R runs of P tokens, run i being this rank's part of range i, which is "
    "rank 0's part, then rank 1's, and so on. The keys of a range are those of its first "
    "clip_token_nums tokens (None or 0: of all), and the keys of all ranges follow each other in "
    "one list; query head h meets head h // (Hq/Hkv). k_ranges is [R, 2] int64: all W*P queries "
    "of range i attend to entries k_ranges[i, 0] to k_ranges[i, 1]-1 of that list, without a "
    "mask: softmax(q K^T / sqrt(D)) V, with scores, softmax and sums in float32 or better; the "
    "weights may round to the inputs' dtype before they meet V. Return the results for this "
    "rank's queries, in their order: a contiguous [R*P, Hq, D] of query's dtype, which is "
    "bfloat16 in runs in float16 too. W divides Hq, Hkv divides Hq, and W divides Hkv or Hkv "
    "divides W. cp_shuffle_num, clip_token_nums and k_ranges are the same on every rank; they and "
    "all sizes may differ from call to call. The arguments must stay as they are.",
    outputs=("out",),
    also=("Sequence Parallel",),
    m_step=1,
    n_step=64,
    sizes=sizes(tiny=(8, 256), large=(2048, 1024)),
    tolerances=tolerances(float32=1e-4, bfloat16=3e-2, float16=3e-2),
    tolerance_reason="softmax weights and outputs that round to bfloat16 cost up to "
    "0.011, float32 attention 2e-5; inputs cut to 3 bits of mantissa cost 0.8",
    known_issues=(
        "Queries after the last valid token of a range are padding and are computed as well.",
        "Published ranges attend to themselves alone; hardened ones also to earlier ones.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """m/1024 of PKB's tokens in a range and D = n/8; its heads depend on the number of ranks."""
    heads, chunk = (24, 12150) if world_size <= 4 else (48, 21600)
    heads = heads if heads % world_size == 0 else world_size * max(1, heads // world_size)
    chunk = max(world_size, chunk * m // 1024)
    part = -(-chunk // world_size)
    return Dims(m=m, n=n, heads=heads, kv_heads=8, chunk=chunk, part=part, width=n // 8)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Keys keep their spread in all trials, so scores stay moderate. Some tokens are faint."""
    dtype = torch.bfloat16 if ctx.dtype is torch.float16 else ctx.dtype
    ranges = ctx.choose(4, (4, 3, 1))
    kv_heads = ctx.choose(d.kv_heads, (d.kv_heads, 2))
    clip = ctx.choose(d.chunk, (d.chunk, d.chunk - d.chunk // 5, None))
    valid = clip or ctx.world_size * d.part
    ends = torch.arange(1, ranges + 1, device=ctx.device) * valid
    reach = ctx.choose(valid, (valid, ranges * valid, valid + valid // 3))
    query = ctx.randn(ranges * d.part, d.heads, d.width, dtype=dtype)
    shape = (ranges * d.part, kv_heads, d.width)
    key = ctx.pick(ctx.randn(*shape, dtype=dtype), ctx.varied(torch.zeros(shape)).to(dtype))
    value = ctx.randn(*shape, dtype=dtype)
    lot = lots(ctx, ranges * d.part, 1, 1)
    faint = with_faint(query, key, value, lot, scale=d.width**-0.5)
    query, key, value = ctx.pick([query, key, value], faint)
    return {
        "query": query,
        "key_value": torch.cat([key, value], dim=-1),
        "k_ranges": torch.stack([(ends - reach).clamp(min=0), ends], dim=1),
        "cp_shuffle_num": ranges,
        "clip_token_nums": clip,
        "group": None,
    }


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """[tokens, heads, D], several heads of q for each of k and v."""
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, dim=1).transpose(0, 1).unsqueeze(0) for x in (k, v))
    q = q.transpose(0, 1).unsqueeze(0)
    # No kernel holds float64 scores in parts by itself.
    blocks = torch.split(q, 256, dim=2) if q.dtype is torch.float64 else (q,)
    attention = torch.nn.functional.scaled_dot_product_attention
    return torch.cat([attention(block, k, v) for block in blocks], dim=2)[0].transpose(0, 1)


def reference(
    query: torch.Tensor,
    key_value: torch.Tensor,
    k_ranges: torch.Tensor,
    cp_shuffle_num: int,
    clip_token_nums: int | None = None,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world, (tokens, _, width) = dist.get_world_size(group), query.shape
    part = tokens // cp_shuffle_num
    clip = clip_token_nums or world * part

    def swap(x: torch.Tensor) -> tuple[torch.Tensor, dist.Work | None]:
        """Start to send block r of dim 0 to rank r."""
        received = torch.empty_like(x)
        return received, dist.all_to_all_single(received, x, group=group, async_op=True)

    copies = max(1, world // key_value.shape[1])
    blocks = key_value.repeat_interleave(copies, dim=1).view(tokens, world, -1, 2 * width)
    pieces, arriving = swap(blocks.transpose(0, 1).contiguous())
    if arriving is not None:
        arriving.wait()
    ranges = pieces.view(world, cp_shuffle_num, part, -1, 2 * width).transpose(0, 1).flatten(1, 2)
    keys, values = torch.split(ranges[:, :clip].flatten(0, 1), width, dim=-1)
    queries = query.view(cp_shuffle_num, part, world, -1, width).transpose(1, 2)
    spans, result = k_ranges.tolist(), queries[0]
    arrived: list[torch.Tensor] = []
    outs: list[torch.Tensor] = []
    for step in range(-1, cp_shuffle_num + 1):  # attends to range `step`
        leaving = [queries[step + 1]] if step + 1 < cp_shuffle_num else []
        if step > 0:
            leaving.append(result)
        if leaving:
            pieces, arriving = swap(torch.cat(leaving, dim=-1))
        if 0 <= step < cp_shuffle_num:
            start, end = spans[step]
            result = _attend(arrived[step].flatten(0, 1), keys[start:end], values[start:end])
            result = result.reshape(world, part, -1, width)
        if leaving and arriving is not None:
            arriving.wait()
        parts = torch.split(pieces, width, dim=-1)
        if step + 1 < cp_shuffle_num:
            arrived.append(parts[0])
        if step > 0:
            outs.append(parts[-1])
    return torch.stack(outs).transpose(1, 2).reshape(query.shape)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of the timed call, in which every range attends to itself. Queries and results change places
    with heads, or all keys and values go to all ranks."""
    tokens, pairs = 4 * d.part, 4 * world_size * d.part * d.chunk
    kv_share = tokens * max(1, d.kv_heads / world_size) * 2 * d.width
    queries, kv = tokens * d.heads * d.width, tokens * d.kv_heads * 2 * d.width
    by_heads = all_to_all_bytes(2 * queries, world_size) + all_gather_bytes(kv_share, world_size)
    return Cost(
        wire_bytes=min(by_heads, all_gather_bytes(kv, world_size)) * itemsize,
        flops=4 * pairs * d.heads / world_size * d.width,
        hbm_bytes=(2 * queries + kv) * itemsize,
    )
