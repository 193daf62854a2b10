"""All-reduce of gradients that every rank has rounded to int8, block by block."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes, all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=44,
    title="Block-int8 quantised gradient all-reduce (mean)",
    source="deepspeedai/DeepSpeed",
    domain="LLM training",
    summary="Average gradients over ranks after each rank rounds its own to int8 per block.",
    statement="flat_grad is this rank's gradient, [n], the same n on every rank of the default "
    "process group. It is cut into blocks of block_size consecutive elements; the last one may be "
    "shorter. In float32, every block has a scale s = max(max|x|, 1e-8) / 127, and each element "
    "becomes q * s with q = x / s rounded to the nearest integer, ties to even, within -127 to "
    "127: what a symmetric int8 quantiser keeps. Return a new contiguous tensor [n] of the "
    "argument's dtype that holds, on every rank, the mean over ranks of q * s, accumulated in "
    "float32 or better and rounded once. A quotient x / s within a few float32 ulps of a tie may "
    "be rounded either way. The argument must stay as it is. n may be any positive integer, "
    "block_size any power of two from 8 on, and it may differ from call to call.",
    outputs=("mean",),
    also=("FSDP / ZeRO",),
    sizes=sizes(large=(4096, 4096)),
    tolerances=tolerances(float32=1e-5, bfloat16=6e-3, float16=1e-3),
    tolerance_reason="one rounding of the mean to the run dtype (0.004 in bfloat16, 5e-4 in "
    "float16); quotients within 2^-20 of a tie may go either way, apart from that the codes must "
    "be right: means of unquantised gradients are off by 0.017",
    settles_upstream=True,
    known_issues=(
        "The reference exchanges float32; exchanging int8 codes and scales gives the same "
        "result with far fewer bytes.",
        "Upstream divides by the number 127, on a GPU a product with 1/127: at ties PKB's check "
        "tells how a kernel divides; here either code passes.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """Where m and n are odd, seven elements at least are left over by blocks of any size."""
    length = max(m * n, 64 * world_size) | m * n % 2 * 7
    return Dims(m=m, n=n, length=length, block=min(128, max(16, n // 4)))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened: the last block is loud, its first or last element decides its scale, and all others
    lie 0.45 of a step above a code: whatever is not rounded there, or by another scale, is off."""
    values = ctx.randn(d.length)
    loudness = torch.tensor([1, 0, 0.25, 0.5, 1, 1, 2, 4], dtype=ctx.dtype, device=ctx.device)
    level = ctx.integers(torch.zeros(-(-d.length // d.block), dtype=torch.int64), 0, 8)
    grad = values * loudness[level].repeat_interleave(d.block)[: d.length]
    size = ctx.choose(d.block, (d.block, d.block // 2, 2 * d.block))
    last, step = values[-(d.length % size or size) :].float(), values.abs().max().float() / 16
    codes = (last / step).round() + 0.45
    codes[ctx.choose(0, (0, -1))] = 127
    grad[-len(last) :] = ctx.pick(grad[-len(last) :], (codes * step).to(ctx.dtype))
    return {"flat_grad": grad, "block_size": size}


def _blocks(
    flat: torch.Tensor, block_size: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of block_size elements, the last one filled up with zeros, and the scale of each."""
    padded = torch.nn.functional.pad(flat.to(dtype), (0, -flat.numel() % block_size))
    blocks = padded.view(-1, block_size)
    largest = blocks.abs().amax(dim=1, keepdim=True).clamp(min=1e-8)
    return blocks, largest / largest.new_full((), 127)  # a tensor, for a true division on CUDA


def reference(flat_grad: torch.Tensor, block_size: int) -> torch.Tensor:
    blocks, scale = _blocks(flat_grad.flatten(), block_size, torch.float32)
    rounded = (blocks / scale).round().clamp(-127, 127) * scale
    wide = torch.promote_types(flat_grad.dtype, torch.float32)
    mean = rounded.flatten()[: flat_grad.numel()].to(wide)
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    return mean.to(flat_grad.dtype).view(flat_grad.shape)


def keys(flat_grad: torch.Tensor, block_size: int) -> tuple[torch.Tensor, ...]:
    """The least and the largest mean, which differ where some rank's quotient is at a tie."""
    blocks, scale = _blocks(flat_grad, block_size, torch.float64)
    quotient = blocks / scale
    either = torch.stack([quotient * (1 - 2**-20), quotient * (1 + 2**-20)])
    bounds = (either.round().clamp(-127, 127) * scale).sort(dim=0).values
    bounds = bounds.view(2, -1)[:, : flat_grad.numel()].contiguous()
    dist.all_reduce(bounds)
    return tuple(bounds / dist.get_world_size())


def settle(
    got: tuple[torch.Tensor, ...], truth: tuple[torch.Tensor, ...], keys: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, ...]:
    """Only what lies outside the bounds is an error."""
    mean = got[0].double()
    return (truth[0] + mean - mean.clamp(*keys),)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Scales travel as maxima. Blocks of zeros, an eighth under `hardened`, need no codes."""
    codes = d.length * (7 / 8 + itemsize / d.block)
    by_parts = all_reduce_bytes(codes + d.length * itemsize, world_size) / 2
    wire = min(by_parts, all_gather_bytes(codes, world_size))
    return Cost(wire_bytes=wire, flops=7 * d.length, hbm_bytes=2 * d.length * itemsize)
