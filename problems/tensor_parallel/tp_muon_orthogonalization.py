"""Muon's orthogonalisation by Newton-Schulz steps when the momentum matrix is sharded."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=86,
    title="Tensor-parallel Newton-Schulz orthogonalization (Muon)",
    source="NVIDIA-NeMo/Emerging-Optimizers",
    domain="LLM training",
    summary="Normalise a column- or row-sharded matrix and iterate it towards an orthogonal one.",
    statement="The ranks of the group (None means the default process group) hold equal shards x "
    "of a matrix M, in rank order along dimension partition_dim (0: rows, 1: columns). Let X be M, "
    "transposed if partition_dim is 0, so that X is sharded by columns, and divide it by "
    "max(||X||, 1e-7), the Frobenius norm of the whole. Then repeat for i = 0 to steps-1, with "
    "(a, b, c) number i modulo their count of the coefficients below: G = X X^T, X <- a X + (b G + "
    "c G G) X. Return this rank's shard of the last X, transposed back if partition_dim is 0: a "
    "new contiguous tensor of x's shape and dtype. x is bfloat16 whatever the run dtype; all "
    "arithmetic is float32 or better (no tf32), rounded to x's dtype once at the end; what ranks "
    "exchange may travel in 16 bits a value, with a scale for each 32. "
    "coefficient_type names the coefficients. simple: (3.4445, -4.7750, 2.0315). quintic: (4.0848, "
    "-6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037), (2.8769, -3.1427, "
    "1.2046), (2.8366, -3.0525, 1.2012). polar_express: (8.2051, -22.9019, 16.4607), (4.0664, "
    "-2.8612, 0.5184), (3.9096, -2.8234, 0.5250), (3.2856, -2.4647, 0.5074), (2.2779, -1.6447, "
    "0.4162), (1.8726, -1.2307, 0.3585), (1.8564, -1.2132, 0.3568), (1.8750, -1.2500, 0.3750). "
    "aol: (4.0098, -7.0585, 2.4635), (3.4585, -5.5479, 2.5959), (2.7573, -3.2939, 1.4254), "
    "(2.7215, -3.0494, 1.3169). Raise AssertionError for another name, a partition_dim that is "
    "neither 0 nor 1, an x that is no matrix, or steps that are no multiple of the count. All "
    "ranks agree on everything but x's values, which must stay as they are; steps, "
    "coefficient_type and partition_dim may differ from call to call.",
    outputs=("orthogonal",),
    also=("FSDP / ZeRO",),
    sizes=sizes(tiny=(128, 128), large=(4096, 4096)),
    wire_bits=16,
    tolerances=tolerances(float32=6e-3, bfloat16=6e-3, float16=6e-3),
    tolerance_reason="rounding once to bfloat16 is off by 0.003 in every run dtype, since x is "
    "bfloat16; steps in bfloat16 by 0.011 to 0.08, in tf32 by 0.0035 to 0.01 (polar_express "
    "most), an x cut to 3 bits by 0.3",
    known_issues=("PKB's absolute tolerance of 0.01 is a quarter of a typical output's size.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """M is m/2 x n/2, which is PKB's fixed 512 x 512 at m = n = 1024."""
    return Dims(m=m, n=n, rows=max(1, m // 2), columns=-(-n // (2 * world_size)))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    x = ctx.randn(d.rows, d.columns, dtype=torch.bfloat16) + 0.01 * ctx.rank
    steps, coefficient_type, partition_dim = ctx.choose(
        (5, "quintic", 1),
        ((5, "quintic", 1), (8, "polar_express", 0), (4, "aol", 1), (6, "simple", 0)),
    )
    return {
        "x": x if partition_dim else x.T.contiguous(),
        "steps": steps,
        "coefficient_type": coefficient_type,
        "partition_dim": partition_dim,
        "group": None,
    }


def _coefficients(coefficient_type: str) -> list[tuple[float, float, float]]:
    known = {
        "simple": [(3.4445, -4.7750, 2.0315)],
        "quintic": [
            (4.0848, -6.8946, 2.9270),
            (3.9505, -6.3029, 2.6377),
            (3.7418, -5.5913, 2.3037),
            (2.8769, -3.1427, 1.2046),
            (2.8366, -3.0525, 1.2012),
        ],
        "polar_express": [
            (8.2051, -22.9019, 16.4607),
            (4.0664, -2.8612, 0.5184),
            (3.9096, -2.8234, 0.5250),
            (3.2856, -2.4647, 0.5074),
            (2.2779, -1.6447, 0.4162),
            (1.8726, -1.2307, 0.3585),
            (1.8564, -1.2132, 0.3568),
            (1.8750, -1.2500, 0.3750),
        ],
        "aol": [
            (4.0098, -7.0585, 2.4635),
            (3.4585, -5.5479, 2.5959),
            (2.7573, -3.2939, 1.4254),
            (2.7215, -3.0494, 1.3169),
        ],
    }
    assert coefficient_type in known, f"no coefficients are called {coefficient_type!r}"
    return known[coefficient_type]


def reference(
    x: torch.Tensor,
    steps: int = 5,
    coefficient_type: str = "quintic",
    partition_dim: int = 1,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    coefficients = _coefficients(coefficient_type)
    assert x.dim() == 2
    assert partition_dim in (0, 1)
    assert steps % len(coefficients) == 0
    shard = (x if partition_dim else x.T).to(torch.promote_types(x.dtype, torch.float32))
    norm = torch.linalg.vector_norm(shard).square()
    dist.all_reduce(norm, group=group)
    shard = shard / norm.sqrt().clamp(min=1e-7)
    for step in range(steps):
        a, b, c = coefficients[step % len(coefficients)]
        gram = shard @ shard.T
        dist.all_reduce(gram, group=group)
        shard = a * shard + torch.addmm(gram, gram, gram, beta=b, alpha=c) @ shard
    own: torch.Tensor = shard if partition_dim else shard.T
    return own.to(x.dtype).contiguous()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """x is bfloat16; gathering it once moves less than reducing the Gram matrix in every step. G
    is symmetric, and (b G + c G G) X is also G (b X + c G X)."""
    shard, steps = d.rows * d.columns, 5
    update = min(2 * d.rows * shard + d.rows**3, 4 * d.rows * shard)
    return Cost(
        wire_bytes=all_gather_bytes(2 * shard, world_size),
        flops=steps * (d.rows * shard + update) + 3 * shard,
        hbm_bytes=2 * 2 * shard,
    )
