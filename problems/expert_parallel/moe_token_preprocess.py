"""The bookkeeping before a mixture of experts sends its tokens: who sends how many rows to whom."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=26,
    title="MoE dispatch bookkeeping (split sizes)",
    source="ByteDance-Seed/VeOmni",
    domain="LLM training",
    summary="Turn each rank's expert assignment into the split sizes of the dispatch.",
    statement="expert_mask is this rank's one-hot assignment, [num_experts, top_k, tokens] in "
    "float32: 1 where the token's choice of that slot is the expert, else 0. It is contiguous, and "
    "both slots of a token may name the same expert. W is the size of group (None means the "
    "default process group), El = num_experts / W, and expert e belongs to the rank e // El of the "
    "group. Let cnt[s, e] be the sum of rank s's mask over slots and tokens. Return four tensors. "
    "First, int64 [W]: for each rank d, how many rows this rank sends it, the sum of its own cnt "
    "over d's experts. Second, int64 [W]: for each rank s, how many rows this rank receives from "
    "it. Third, in the mask's dtype, [W, El]: cnt[s, e] for every rank s and each of this rank's "
    "own experts e. Fourth, in the mask's dtype, [El]: the sum of the third over s. All counts are "
    "exact. The results may be on the CPU, where the published task has them, or on the mask's "
    "device; they must be complete once the device is synchronised. tokens may be any positive "
    "integer; num_experts (8 to 64) may differ from call to call.",
    outputs=(
        "input_splits",
        "output_splits",
        "num_global_tokens_per_local_expert",
        "num_global_sum_tokens_per_local_expert",
    ),
    n_step=None,
    sizes=sizes(large=(1 << 21, 4096)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="counts far below 2^24: float32 holds them exactly",
    known_issues=(
        "PKB's results lie on the CPU and two of them are copied there without waiting: they "
        "hold only after the device is synchronised.",
        "The run dtype plays no part: masks are float32.",
        "PKB hands the mask over as a transposed view; here, as all arguments, it is contiguous.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """PKB has 8 experts. More at `large` keep each one's count below 2^24."""
    return Dims(m=m, n=n, experts=max(8, n // 128))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    experts = ctx.choose(d.experts, (d.experts, 2 * d.experts))
    uniform = ctx.randint(0, d.experts, d.m, 2)
    popularity = ctx.varied(torch.zeros(experts), spread=0.7)
    uneven = (ctx.varied(torch.zeros(d.m, 2, experts)) + popularity).argmax(dim=-1)
    chosen = ctx.pick(uniform, uneven)
    mask = torch.nn.functional.one_hot(chosen, experts).float().permute(2, 1, 0).contiguous()
    return {"expert_mask": mask, "num_experts": experts, "group": None}


def reference(
    expert_mask: torch.Tensor, num_experts: int, group: dist.ProcessGroup | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    counts = expert_mask.sum(dim=(1, 2))
    gathered = counts.new_empty(world * num_experts)
    dist.all_gather_into_tensor(gathered, counts, group=group)
    table = gathered.cpu().view(world, world, -1)  # by sender, owner and its experts
    received = table[:, rank].contiguous()
    input_splits = table[rank].sum(dim=1).to(torch.int64)
    output_splits = received.sum(dim=1).to(torch.int64)
    return input_splits, output_splits, received, received.sum(dim=0)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """In float32, whatever the run dtype is. A token's slot names one expert: the last one has what
    the others leave."""
    mask = (d.experts - 1) * 2 * d.m
    return Cost(
        wire_bytes=(world_size - 1) * (d.experts // world_size) * 4,
        flops=mask,
        hbm_bytes=mask * 4,
    )
