"""Block-wise FP8 quantisation, and everybody gets everybody's codes and scales."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=19,
    title="Block-wise FP8 quantisation + all-gather",
    source="togethercomputer/xorl",
    domain="LLM training",
    summary="Quantise a matrix to FP8 E4M3 in blocks, then gather codes and scales of all ranks.",
    statement="local_tensor is this rank's contiguous matrix [M, N]; every block of block_size "
    "consecutive elements of a row shares a scale s = max|x| / 448, in float32 (0 where the block "
    "is all zero). The codes are x / s, or x where s = 0, in float32, rounded to the nearest "
    "float8_e4m3fn, ties to even, never NaN. Return two new contiguous tensors, the same on "
    "every rank of the default process group: the codes of all W ranks, [W*M, N] in "
    "float8_e4m3fn, and the scales, [W*M, N/block_size] in float32, both stacked along the "
    "first axis in rank order. A quotient within a few float32 ulps of the middle between two "
    "codes may become either of them. The argument must stay as it is. M may be any positive "
    "integer, block_size (128, 64 or 32) divides N, and it may differ from call to call.",
    outputs=("codes", "scales"),
    also=("FSDP / ZeRO",),
    n_step=128,
    sizes=sizes(tiny=(16, 512), large=(4096, 4096)),
    tolerances=tolerances(float32=1e-6, bfloat16=1e-6, float16=1e-6),
    tolerance_reason="a scale is rounded once or twice in float32 (1e-7); codes must be the "
    "nearest ones, but where the quotient is within 2^-20 of a tie both neighbours are right, "
    "since x * (1/s) and x / s may differ there; any other code is off by 2^-9 or more",
    settles_upstream=True,
    known_issues=(
        "In a bfloat16 run about 0.5 % of upstream's quotients lie on a tie: in PKB's check the "
        "division of its Triton reference decides them; here either code passes.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, block=128)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    values = ctx.randn(d.m, d.n)
    loudness = torch.tensor([1, 0, 0.25, 0.5, 1, 2, 4, 8], dtype=ctx.dtype, device=ctx.device)
    level = ctx.integers(torch.zeros(d.m, d.n // d.block, dtype=torch.int64), 0, 8)
    return {
        "local_tensor": values * loudness[level].repeat_interleave(d.block, dim=1),
        "block_size": ctx.choose(d.block, (d.block, 32, 64)),
    }


def reference(
    local_tensor: torch.Tensor, block_size: int = 128
) -> tuple[torch.Tensor, torch.Tensor]:
    (m, n), world = local_tensor.shape, dist.get_world_size()
    blocks = local_tensor.to(torch.float32).view(m, -1, block_size)
    scale = blocks.abs().amax(dim=-1, keepdim=True)
    scale /= scale.new_full((), 448)  # a Python number would become a product with 1/448 on CUDA
    quotient = blocks / torch.where(scale == 0, 1, scale)
    code = quotient.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)
    codes, scales = code.new_empty(world * m, n), scale.new_empty(world * m, n // block_size)
    dist.all_gather_into_tensor(codes, code.view(m, n))
    dist.all_gather_into_tensor(scales, scale.view(m, -1))
    return codes.view(torch.float8_e4m3fn), scales


def oracle(local_tensor: torch.Tensor, block_size: int = 128) -> tuple[torch.Tensor, ...]:
    return tuple(part.double() for part in reference(local_tensor, block_size))


def keys(local_tensor: torch.Tensor, block_size: int = 128) -> tuple[torch.Tensor]:
    """The quotients of all ranks before rounding."""
    blocks = local_tensor.view(-1, block_size)
    scale = blocks.abs().amax(dim=1, keepdim=True) / 448
    quotient = (blocks / torch.where(scale == 0, 1, scale)).view_as(local_tensor)
    quotients = quotient.repeat(dist.get_world_size(), 1)
    dist.all_gather_into_tensor(quotients, quotient)
    return (quotients,)


def settle(
    got: tuple[torch.Tensor, ...], truth: tuple[torch.Tensor, ...], keys: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, ...]:
    """A code is as good as the true one unless it is farther from the quotient."""
    (quotient,), code, best = keys, got[0].double(), truth[0].double()
    slack = quotient.abs() * 2**-20
    as_good = (code - quotient).abs() <= (best - quotient).abs() + slack
    return (torch.where(as_good, best, code), *got[1:])


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Scales travel as maxima. Blocks of zeros, an eighth under `hardened`, need no codes."""
    codes, scales = d.m * d.n, d.m * d.n / d.block
    wire = all_gather_bytes(7 / 8 * codes + itemsize * scales, world_size)
    hbm = codes * itemsize + world_size * (codes + 4 * scales)
    return Cost(wire_bytes=wire, flops=4 * codes, hbm_bytes=hbm)
