"""The tail of a MoE LoRA backward pass: three small adapter gradients are summed in place."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=30,
    title="MoE LoRA backward: adapter gradient sync",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="Sum three small LoRA adapter gradients over the expert-parallel group, in place.",
    statement="In an expert-parallel grouped GEMM with LoRA adapters, three adapter matrices are "
    "the same on every rank, so their gradients must be summed. Each rank calls with its own "
    "grad_fc1_1_lora_A, [8, N], grad_fc1_2_lora_A, [8, N], and grad_fc2_lora_B, [N, 8], of one "
    "dtype, contiguous. Overwrite each of the three with its elementwise sum over the ranks of "
    "group (None means the default process group), and return the three, in this order, as a "
    "tuple of tensors of the same shapes and dtype; they may be the very arguments. The sums "
    "are the same on every rank of the group. Gradients are fresh in every call; N may be any "
    "positive integer.",
    outputs=("fc1_1_lora_A", "fc1_2_lora_A", "fc2_lora_B"),
    mutates=("grad_fc1_1_lora_A", "grad_fc1_2_lora_A", "grad_fc2_lora_B"),
    also=("Data Parallel", "Collective Primitive"),
    m_step=None,
    sizes=sizes(tiny=(64, 128), large=(8192, 524288)),
    tolerances=tolerances(float32=1e-6, bfloat16=2.5e-2, float16=3e-3, rms={"bfloat16": 0.095}),
    tolerance_reason="as all-reduce: each of up to 7 additions may round to the run dtype, in "
    "any order; "
    "the rms of honest answers in bfloat16 is 0.077 at most, over int8 wires 0.12 or more",
    known_issues=(
        "A call sums its arguments in place: called again on them it sums the sums, so the "
        "inputs must be restored before each call.",
        "PKB compares the returned tensors only, not what a call leaves in its arguments.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, lora_rank=8)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {
        "grad_fc1_1_lora_A": ctx.randn(d.lora_rank, d.n),
        "grad_fc1_2_lora_A": ctx.randn(d.lora_rank, d.n),
        "grad_fc2_lora_B": ctx.randn(d.n, d.lora_rank),
        "group": None,
    }


def reference(
    grad_fc1_1_lora_A: torch.Tensor,
    grad_fc1_2_lora_A: torch.Tensor,
    grad_fc2_lora_B: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    dist.all_reduce(grad_fc1_1_lora_A, group=group)
    dist.all_reduce(grad_fc1_2_lora_A, group=group)
    dist.all_reduce(grad_fc2_lora_B, group=group)
    return grad_fc1_1_lora_A, grad_fc1_2_lora_A, grad_fc2_lora_B


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    grads = 3 * d.lora_rank * d.n
    return Cost(
        wire_bytes=all_reduce_bytes(grads * itemsize, world_size),
        flops=(world_size - 1) / world_size * grads,
        hbm_bytes=2 * grads * itemsize,
    )
