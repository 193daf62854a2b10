"""How a mixture of experts dispatches tokens: copy by expert, exchange, sort by local expert."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=28,
    title="MoE dispatch: permute, all-to-all, sort by local expert",
    source="ByteDance-Seed/VeOmni",
    domain="LLM training",
    summary="Copy each token once per chosen expert, exchange, and sort rows by local expert.",
    statement="hidden_states is [..., H], T rows when its leading axes are flattened; "
    "expert_mask is float32 [num_experts, top_k, T], 1 where the token's choice of that slot is "
    "the expert, else 0, two different experts per token. Let map be the mask's sum over slots, "
    "[num_experts, T], and idx the token ids of its nonzero entries, experts in order and tokens "
    "ascending within each: int64 [R]. Of the rows hidden_states[idx], the first input_splits[0] "
    "go to rank 0 of group (None means the default process group), the next input_splits[1] to "
    "rank 1, and so on; raise RuntimeError unless input_splits sum to R. output_splits[s] rows "
    "arrive from rank s and are laid out by rank. num_global_tokens_per_local_expert is int64 "
    "[W, El], El = num_experts / W: cut the received rows into consecutive chunks of these "
    "lengths, row-major (by rank, then local expert), and reorder the chunks by local expert "
    "first and rank second. Return four things: these rows, contiguous, [sum(output_splits), H] "
    "in the dtype of hidden_states; map, in the mask's dtype; idx; and torch.Size((T, H)). Use "
    "splits and lengths as given: they may be uneven or 0, and they and num_experts may differ "
    "from call to call. Splits are lists of integers on the host.",
    outputs=("permuted", "routing_map", "permutation_mapping"),
    sizes=sizes(large=(4096, 4096)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="values are moved, not computed",
    known_issues=(
        "PKB's splits are even whatever the routing is, so rows there do not reach the ranks of "
        "their experts; hardened splits count the real routing.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, experts=8)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    world, pair = ctx.world_size, (d.experts, False)
    experts, uneven = ctx.choose(pair, (pair, (d.experts, True), (2 * d.experts, True)))
    expert = torch.arange(experts, device=ctx.device)
    order = 5 * expert + 3 * torch.arange(world, device=ctx.device).view(-1, 1)
    order += ctx.choose(0, range(experts))
    weights = order % experts if uneven else torch.ones_like(order)
    ends = 2 * d.m * weights.cumsum(dim=1) // weights.sum(dim=1, keepdim=True)
    loads = ends.diff(dim=1, prepend=ends.new_zeros(world, 1))  # rows of a rank for an expert
    by_owner = loads.view(world, world, -1)
    mine = by_owner[:, ctx.rank]  # by sender and local expert

    def published() -> torch.Tensor:
        return torch.stack([ctx.randperm(experts)[:2] for _ in range(d.m)])

    def hidden() -> torch.Tensor:
        """As many of each expert as the loads say, and no token twice the same."""
        rows = expert.repeat_interleave(loads[ctx.rank])
        return rows.view(2, d.m).T[ctx.randperm(d.m)]

    hidden_states = ctx.randn(d.m, d.n)
    mask = torch.nn.functional.one_hot(ctx.pick(published, hidden)(), experts)
    return {
        "hidden_states": hidden_states,
        "expert_mask": mask.permute(2, 1, 0).contiguous().float(),
        "num_experts": experts,
        "input_splits": by_owner[ctx.rank].sum(dim=1).tolist(),
        "output_splits": mine.sum(dim=1).tolist(),
        "num_global_tokens_per_local_expert": mine.contiguous(),
        "group": None,
    }


def reference(
    hidden_states: torch.Tensor,
    expert_mask: torch.Tensor,
    num_experts: int,
    input_splits: list[int],
    output_splits: list[int],
    num_global_tokens_per_local_expert: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Size]:
    tokens = hidden_states.reshape(-1, hidden_states.shape[-1])
    routing_map = expert_mask.sum(dim=1)
    found = torch.nonzero_static(routing_map, size=sum(input_splits))  # the host need not wait
    mapping = found[:, 1].contiguous()
    received = tokens.new_empty(sum(output_splits), tokens.shape[1])
    dist.all_to_all_single(received, tokens[mapping], output_splits, input_splits, group=group)
    lengths = num_global_tokens_per_local_expert
    chunks = received.split_with_sizes(lengths.flatten().tolist())
    local = lengths.shape[1]
    permuted = torch.cat([chunk for expert in range(local) for chunk in chunks[expert::local]])
    return permuted, routing_map, mapping, tokens.shape


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of even splits. A token goes to a rank once, also where both of its experts are there, as of
    published experts some are."""
    local, tokens = d.experts // world_size, d.m * d.n * itemsize
    both = local * (local - 1) / (d.experts * (d.experts - 1))
    return Cost(
        wire_bytes=(world_size - 1) * (2 / world_size - both) * tokens,
        flops=2 * d.experts * d.m,
        hbm_bytes=3 * tokens + (4 * 3 * d.experts + 16) * d.m,
    )
