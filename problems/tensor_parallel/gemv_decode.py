"""The output projection of a decoding step: logits of vocabulary shards, gathered everywhere."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=46,
    title="Vocabulary-sharded output projection for decoding",
    source="NVIDIA/TensorRT-LLM",
    domain="Inference engines",
    summary="Logits of a few tokens, each rank computing its part of the vocabulary, on all ranks.",
    statement="The output projection of a language model is sharded over the vocabulary on the W "
    "ranks of the default process group. hidden_states, [T, H], are the same few tokens on "
    "every rank; weight_shard, [V/W, H], and bias_shard, [V/W], are rank r's rows r*V/W to "
    "(r+1)*V/W-1 of the weight and of the bias; all are of one dtype. Return, on every rank, "
    "the same new contiguous tensor [T, V] of that dtype with the logits of the whole "
    "vocabulary: columns r*V/W to (r+1)*V/W-1 are hidden_states @ weight_shard^T + bias_shard of "
    "rank r. The product accumulates in float32 or better and may round to the inputs' dtype "
    "before the bias is added. All ranks agree on shapes and dtype; V/W and H may be any "
    "positive integers, and T, 1 to 8, may differ from call to call. The arguments must stay as "
    "they are.",
    outputs=("logits",),
    also=("Vocab Parallel",),
    sizes=sizes(tiny=(512, 128), large=(131072, 4096)),
    tolerances=tolerances(
        float32=5e-5,
        bfloat16=2.5e-2,
        float16=3.5e-3,
        rms={"float32": 0.02, "bfloat16": 0.087},
    ),
    tolerance_reason="products split over H, and the product before the bias, may round to the "
    "run dtype (bfloat16: 0.013 measured, float16: 0.0016); float32 rejects tf32 inside the "
    "product (0.0009), 16 bits reject inputs in fp8 (0.095); "
    "the rms of honest answers is 0.074 at most in bfloat16, over int8 wires 0.1 or more; in "
    "float32 0.0021, over int16 wires 0.2",
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """PKB's clamps from m = n = 1024 on; below, V/W = m and H = n."""
    return Dims(
        m=m,
        n=n,
        tokens=max(1, min(m // 1024, 8)),
        hidden=min(n, 4096),
        part=max(min(m, 1024), -(-m // world_size)),
    )


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    tokens = ctx.choose(d.tokens, (d.tokens, 3, 8))
    mine = slice(ctx.rank * d.part, (ctx.rank + 1) * d.part)
    vocab = ctx.world_size * d.part
    ctx.reseed_upstream(0)  # every rank draws all of it
    hidden_states = ctx.randn(tokens, d.hidden, shared=True)
    weight = ctx.randn(vocab, d.hidden, shared=True)[mine]
    bias = ctx.randn(vocab, shared=True)[mine]
    return {
        "hidden_states": hidden_states,
        "weight_shard": weight * ctx.pick(1.0, d.hidden**-0.5),
        "bias_shard": bias.clone(),
    }


def reference(
    hidden_states: torch.Tensor, weight_shard: torch.Tensor, bias_shard: torch.Tensor
) -> torch.Tensor:
    world, block = dist.get_world_size(), hidden_states @ weight_shard.T + bias_shard
    tokens, part = block.shape
    blocks = block.new_empty(world * tokens, part)
    dist.all_gather_into_tensor(blocks, block)
    return blocks.view(world, tokens, part).transpose(0, 1).reshape(tokens, world * part)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    logits, weights = d.tokens * d.part, d.part * d.hidden
    return Cost(
        wire_bytes=all_gather_bytes(logits * itemsize, world_size),
        flops=2 * d.tokens * weights + logits,
        hbm_bytes=(d.tokens * d.hidden + weights + d.part + world_size * logits) * itemsize,
    )
