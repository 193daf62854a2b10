"""How a mixture of experts combines: unsort, exchange back, weight, and add up per token."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=29,
    title="MoE combine: unsort, all-to-all, weighted un-permute",
    source="ByteDance-Seed/VeOmni",
    domain="LLM training",
    summary="Send expert outputs back to their tokens' ranks, weight them, and add them up.",
    statement="Undo the dispatch of a mixture of experts. expert_outputs is [sum(output_splits), "
    "H]; its chunks, by local expert first and by the rank of group they came from second (None "
    "means the default process group), have the lengths "
    "num_global_tokens_per_local_expert[rank, expert], int64 [W, num_experts / W]. Reorder "
    "them by rank first and local expert second; then output_splits[s] rows go back to rank s, "
    "and input_splits[s] rows arrive from rank s. The R received rows, in order, belong to the "
    "True entries of routing_map, bool [num_experts, T], row-major. "
    "local_input_permutation_mapping, int64 [R], holds the token of each. selected_experts, "
    "int64 [T, top_k], names each token's experts, different ones and in any order, and "
    "routing_weights, [T, top_k], their weights. Multiply each row by the weight that its token "
    "gives to its expert and return, for each token, the sum of its rows: a contiguous tensor of "
    "shape org_hidden_states_shape = (T, H), in the dtype of expert_outputs. Products and sums "
    "may round to that dtype. Splits are lists of integers on the host. Use splits and lengths "
    "as given: they may be uneven or 0, and they and num_experts may differ from call to call.",
    outputs=("hidden_states",),
    sizes=sizes(large=(4096, 4096)),
    tolerances=tolerances(float32=1e-6, bfloat16=2.5e-2, float16=3e-3, rms={"bfloat16": 0.075}),
    tolerance_reason="two products and their sum round to the run dtype: up to 0.012 in bfloat16 "
    "(1.6e-7 in float32); values cut to 3 bits of mantissa are off by 0.13, one rank's zeros by "
    "more than 1; "
    "the rms of honest answers in bfloat16 is 0.048 at most, over int8 wires 0.11 or more",
    known_issues=(
        "PKB's splits are even whatever the routing is, so rows there do not belong to the "
        "experts whose weights they get; hardened splits count the real routing.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, experts=8)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    world, pair = ctx.world_size, (d.experts, False)
    experts, uneven = ctx.choose(pair, (pair, (d.experts, True), (2 * d.experts, True)))
    expert = torch.arange(experts, device=ctx.device)
    start = ctx.choose(0, range(experts)) + 3 * torch.arange(world, device=ctx.device).view(-1, 1)
    order = start + 5 * expert
    weights = order % experts if uneven else torch.ones_like(order)
    ends = 2 * d.m * weights.cumsum(dim=1) // weights.sum(dim=1, keepdim=True)
    loads = ends.diff(dim=1, prepend=ends.new_zeros(world, 1))  # rows of a rank for an expert
    by_owner = loads.view(world, world, -1)
    mine = by_owner[:, ctx.rank]  # by sender and local expert

    def published() -> tuple[torch.Tensor, torch.Tensor]:
        selected = torch.stack([ctx.randperm(experts)[:2] for _ in range(d.m)])
        logits = torch.stack([ctx.randn(2) for _ in range(d.m)])
        return selected.sort(dim=1).values, logits.softmax(dim=1)

    def hidden() -> tuple[torch.Tensor, torch.Tensor]:
        """As many of each expert as the loads say, and no token twice the same."""
        rows = expert.repeat_interleave(loads[ctx.rank])
        pairs = rows.view(2, d.m).T[ctx.randperm(d.m)]
        first = ctx.randint(0, 2, d.m, 1)
        selected = pairs.gather(1, torch.cat([first, 1 - first], dim=1))
        return selected, ctx.varied(torch.zeros(d.m, 2)).sigmoid()

    selected, routing_weights = ctx.pick(published, hidden)()
    routing_map = torch.zeros(experts, d.m, device=ctx.device).scatter(0, selected.T, 1).bool()
    return {
        "expert_outputs": ctx.randn(int(mine.sum()), d.n),
        "routing_weights": routing_weights,
        "selected_experts": selected.contiguous(),
        "num_experts": experts,
        "input_splits": by_owner[ctx.rank].sum(dim=1).tolist(),
        "output_splits": mine.sum(dim=1).tolist(),
        "num_global_tokens_per_local_expert": mine.contiguous(),
        "routing_map": routing_map,
        "local_input_permutation_mapping": routing_map.nonzero()[:, 1].contiguous(),
        "org_hidden_states_shape": torch.Size((d.m, d.n)),
        "group": None,
    }


def reference(
    expert_outputs: torch.Tensor,
    routing_weights: torch.Tensor,
    selected_experts: torch.Tensor,
    num_experts: int,
    input_splits: list[int],
    output_splits: list[int],
    num_global_tokens_per_local_expert: torch.Tensor,
    routing_map: torch.Tensor,
    local_input_permutation_mapping: torch.Tensor,
    org_hidden_states_shape: torch.Size,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    lengths = num_global_tokens_per_local_expert.T.flatten().tolist()
    chunks = expert_outputs.split_with_sizes(lengths)
    sent = torch.cat([chunk for rank in range(world) for chunk in chunks[rank::world]])
    rows = sent.new_empty(sum(input_splits), sent.shape[1])
    dist.all_to_all_single(rows, sent, input_splits, output_splits, group=group)
    by_expert = routing_weights.new_zeros(len(routing_weights), num_experts)
    by_expert.scatter_add_(1, selected_experts, routing_weights)
    experts = torch.nonzero_static(routing_map, size=len(rows))[:, 0]  # the host need not wait
    rows.mul_(by_expert[local_input_permutation_mapping, experts].unsqueeze(1))
    combined = rows.new_zeros(org_hidden_states_shape)
    return combined.index_add_(0, local_input_permutation_mapping, rows)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of even splits. Two rows of a token on one rank, which published routing knows, can be summed
    there. The ids of experts tell the rest of the routing."""
    local, tokens = d.experts // world_size, d.m * d.n * itemsize
    both = local * (local - 1) / (d.experts * (d.experts - 1))
    return Cost(
        wire_bytes=(world_size - 1) * (2 / world_size - both) * tokens,
        flops=4 * d.m * d.n,
        hbm_bytes=3 * tokens + (2 * itemsize + 16) * d.m,
    )
