"""Costs are least amounts: no more than the timed inputs need, nor than any way known to do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import pytest
import torch

import problems
from problems import ProblemModule
from problems.running.calls import drawn as inputs_of
from problems.spec import Dims
from problems.trials import PROFILES, TrialSpec

ITEM_BYTES = 2
# Costs are averages over random inputs, of which the tests draw a few thousand rows.
CHANCE = 0.98

# Every test converts: inputs hold tensors, lists and numbers.
Given = dict[str, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The inputs of a plain call on all ranks."""

    d: Dims
    ranks: list[Given]

    @property
    def world_size(self) -> int:
        return len(self.ranks)

    def others(self, rank: int) -> list[Given]:
        return [given for other, given in enumerate(self.ranks) if other != rank]


def drawn(module: ProblemModule, m: int, n: int, world_size: int, profile: str) -> Drawn:
    spec = TrialSpec(trial=7, m=m, n=n, note="plain", timed=True, is_plain=True)
    d = module.dims(m, n, world_size)
    how = {"profile": profile, "secret": b"costs", "dtype": torch.bfloat16}
    ranks = [inputs_of(module, spec, rank, world_size, **how)[1] for rank in range(world_size)]
    return Drawn(d=d, ranks=ranks)  # type: ignore[arg-type]


def distinct(ids: torch.Tensor) -> int:
    return len(torch.unique(ids))


def chunk(rows: torch.Tensor, counts: list[int], index: int) -> torch.Tensor:
    return torch.split(rows, counts)[index]


def looked_up(all_: Drawn, rank: int) -> float:
    ids = all_.ranks[rank]["indices"]
    return float(distinct(ids[ids // all_.d.m != rank]) * all_.d.n * ITEM_BYTES)


def fetched(all_: Drawn, rank: int) -> float:
    ids = all_.ranks[rank]["input_node_ids"]
    return float(distinct(ids[ids // all_.d.shard != rank]) * all_.d.width * ITEM_BYTES)


def features(all_: Drawn, rank: int) -> float:
    """Chunk W - j of the rank j places ahead arrives."""
    world, rows = all_.world_size, 0
    for ahead in range(1, world):
        given = all_.ranks[(rank + ahead) % world]
        counts: list[int] = given["counts_received"]  # type: ignore[assignment]
        rows += distinct(chunk(given["seed_inverse_ids"], counts, world - ahead))
    return float(rows * all_.d.hidden * ITEM_BYTES)


def sums(all_: Drawn, rank: int) -> float:
    given = all_.ranks[rank]
    counts: list[int] = given["counts_received"]  # type: ignore[assignment]
    chunks = [chunk(given["seed_inverse_ids"], counts, j) for j in range(1, len(counts))]
    return float(4 * sum(map(distinct, chunks)) * all_.d.hidden)


def dispatched(all_: Drawn, rank: int) -> float:
    tokens = 0
    for given in all_.others(rank):
        mapping = given["expert_mask"].sum(dim=1).nonzero()[:, 1]
        tokens += distinct(chunk(mapping, given["input_splits"], rank))  # type: ignore[arg-type]
    return float(tokens * all_.d.n * ITEM_BYTES)


def combined(all_: Drawn, rank: int) -> float:
    given = all_.ranks[rank]
    parts = torch.split(given["local_input_permutation_mapping"], given["input_splits"])  # type: ignore[arg-type]
    rows = sum(distinct(part) for source, part in enumerate(parts) if source != rank)
    return float(rows * all_.d.n * ITEM_BYTES)


def codes(all_: Drawn, rank: int) -> float:
    """Of the blocks that are not all zero, and every block's maximum."""
    blocks = [given["local_tensor"].view(-1, all_.d.block) for given in all_.others(rank)]
    kept = sum(int(b.any(dim=1).sum()) for b in blocks)
    return float(kept * all_.d.block + sum(map(len, blocks)) * ITEM_BYTES)


def masks(all_: Drawn, rank: int) -> float:
    """Values, scores too, of objects that no other can suppress: occluded never, or at 0."""
    lately = all_.ranks[rank]["last_occluded"]
    counts: list[int] = all_.ranks[rank]["num_obj_per_gpu"]  # type: ignore[assignment]
    parts = torch.split(lately, counts)
    remote = torch.cat([part for source, part in enumerate(parts) if source != rank])
    kept = int((remote <= 0).sum())
    return float((all_.d.side**2 + 1) * (kept * ITEM_BYTES + (len(remote) - kept) / 8))


def bags(all_: Drawn, rank: int) -> float:
    splits: list[int] = all_.ranks[0]["key_splits"]  # type: ignore[assignment]
    bits = 0.0
    for given in all_.others(rank):
        lengths = torch.split(given["lengths"], [s * all_.d.batch for s in splits])[rank]
        widest = int(given["values"].max()).bit_length()
        bits += float(lengths.sum()) * min(widest, 40) + 4 * len(lengths)
    return bits / 8


def visible(all_: Drawn, rank: int) -> float:
    """At least the Gaussians whose centres this rank's camera sees: 10 values of each."""
    view, k = all_.ranks[rank]["viewmats"][0].float(), all_.ranks[rank]["Ks"][0].float()
    size, seen = torch.tensor([all_.d.width, all_.d.height]), 0
    for given in all_.others(rank):
        points = given["means"].float() @ view[:3, :3].T + view[:3, 3]
        centres = (points @ k.T)[:, :2] / points[:, 2:]
        inside = ((centres > 0) & (centres < size)).all(dim=1)
        seen += int((inside & (points[:, 2] > 0.01)).sum())
    return 20 * seen + 50 * (all_.world_size - 1)


MEASURED: list[tuple[str, int, int, Callable[[Drawn, int], float]]] = [
    ("embedding_lookup", 4096, 16, looked_up),
    ("gnn_sparse_feature_fetch_projection", 256, 96, fetched),
    ("gnn_feature_exchange_all2all", 16384, 16, features),
    ("gnn_feature_exchange_all2all_backward", 16384, 16, sums),
    ("moe_pre_all2all", 2048, 8, dispatched),
    ("moe_post_all2all", 2048, 8, combined),
    ("blocked_fp8_quantize", 256, 2048, codes),
    ("sam3_allgather_iou_suppression", 16, 4000 << 10, masks),
    ("torchrec_kjt_all2all", 8192, 1024, bags),
    ("gsplat_3d_gaussian_splatting", 4096, 512, visible),
]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("slug", "m", "n", "needed"), MEASURED)
def test_some_rank_needs_the_bytes_of_its_cost(
    slug: str, m: int, n: int, needed: Callable[[Drawn, int], float], profile: str
) -> None:
    module = problems.load(problems.find(slug))
    for world_size in module.problem.world_sizes:
        inputs = drawn(module, m, n, world_size, profile)
        least = module.cost(inputs.d, world_size, ITEM_BYTES).wire_bytes
        assert max(needed(inputs, rank) for rank in range(world_size)) >= CHANCE * least


def test_tokens_that_are_left_out_need_no_logits() -> None:
    module = problems.load(problems.find("importance_sampling_loss"))
    for profile in PROFILES:
        inputs = drawn(module, 4096, 4, 4, profile)
        counted = [int((g["labels"] != g["ignore_index"]).sum()) for g in inputs.ranks]
        flops = module.cost(inputs.d, 4, ITEM_BYTES).flops
        assert max(counted) * inputs.d.vocab * (2 * inputs.d.n + 5) >= CHANCE * flops


def others(w: int) -> float:
    return (w - 1) / w


def pairs_of_stages(d: Dims, w: int) -> float:
    """Of one sequence: x to the second stage, keys and values along each ring."""
    return float((1 + 2 * (d.cp - 1)) * d.batch * d.seq * d.width)


def one_rank_computes(d: Dims, w: int) -> float:
    """Rank 0 gets all batches and hands out its state; then new weights are gathered."""
    batches, shared = 2 * d.rows * d.width * (w - 1), others(w) * d.params
    return float(max(batches + shared, 2 * d.part + shared))


def grid(w: int) -> int:
    """Other ranks in the row and the column of the squarest grid."""
    rows = next(r for r in (2, 1) if w % r == 0 and r * r <= w)
    return rows + w // rows - 2


def groups_add_up(d: Dims, w: int, size: int) -> float:
    """Ranks of a group exchange operands; one of each other group sends a sum over its group."""
    operands = (size - 1) * d.part * (d.n + w // size * d.block)
    return float(operands + (w // size - 1) * d.block * d.n)


# Elements that the busiest rank receives in a way that is known to work.
WAYS: list[tuple[str, Callable[[Dims, int], float]]] = [
    ("gemm_allreduce", lambda d, w: 2 * others(w) * d.m * d.n),
    ("gemm_allreduce", lambda d, w: (w - 1) * d.k * (d.m + d.n)),
    ("gemm_reducescatter", lambda d, w: others(w) * d.rows * d.n),
    ("gemm_reducescatter", lambda d, w: (w - 1) * d.part * (d.block + d.n)),
    ("gemm_reducescatter", lambda d, w: groups_add_up(d, w, 2)),
    ("gemm_reducescatter", lambda d, w: groups_add_up(d, w, max(2, w // 2))),
    ("opensora_conv3d_allreduce", lambda d, w: 2 * others(w) * d.channels * d.frames * d.side**2),
    ("moe_ep_wide", lambda d, w: (w - 1) * 3 * d.inner * d.n),
    ("moe_ep_wide", lambda d, w: 4 * others(w) * d.m * d.n),
    ("moe_ep_balanced", lambda d, w: (w - 1) * 3 * d.inner * d.n),
    ("fused_moe_fwd", lambda d, w: (w - 1) * 3 * d.inner * d.n),
    ("fused_moe_fwd_lora", lambda d, w: (w - 1) * 3 * d.inner * d.n),
    ("moe_ep_narrow", lambda d, w: (d.experts - 1) * 3 * d.inner * d.n),
    ("ulysses_attention_e2e", lambda d, w: 1),
    ("fla_gated_deltanet_cp", lambda d, w: 2 * d.heads * d.dk * d.dv),
    ("hyena_forward_cp", lambda d, w: 2 * others(w) * d.channels * d.ls),
    ("hyena_forward_cp", lambda d, w: ceil((w - 1) / 2) * d.channels * d.ls),
    ("ring_attention", lambda d, w: (w - 1) * d.batch * d.seq * d.heads * d.width),
    ("ring_attention", lambda d, w: 4 * others(w) * d.batch * d.seq * d.heads * d.width),
    ("ring_attention_tp", lambda d, w: 2 * d.cp * d.batch * d.seq * d.width),
    ("ring_attention_pp", pairs_of_stages),
    ("ring_attention_backward_dp", lambda d, w: 3 * d.cp * d.batch * d.seq * d.heads * d.width),
    ("openclip_contrastive_loss", lambda d, w: grid(w) * d.batch * d.width),
    (
        "physicsnemo_distributed_rfft",
        lambda d, w: d.batch * d.height * d.width * (3 * w - 2) / w**2,
    ),
    ("zero1_optimizer_shard", lambda d, w: (1 + 2 * others(w)) * d.params),
    ("zero1_optimizer_shard", one_rank_computes),
    ("zero2_optimizer_shard_grad", one_rank_computes),
    ("ddp", lambda d, w: max(3 * d.params, 2 * (w - 1) * d.rows * d.width)),
    ("fsdp_step_e2e", lambda d, w: 2 * others(w) * d.params),
    ("fsdp_step_e2e", lambda d, w: (w - 1) * (d.part + 2 * d.rows * d.width)),
    ("distributed_sample_sort", lambda d, w: 2 * others(w) * (1 << 16)),
]


@pytest.mark.parametrize(("slug", "received"), WAYS)
def test_no_way_known_to_work_moves_less_than_the_cost(
    slug: str, received: Callable[[Dims, int], float]
) -> None:
    module = problems.load(problems.find(slug))
    for world_size in module.problem.world_sizes:
        for size in module.problem.sizes.values():
            d = module.dims(size.m, size.n, world_size)
            least = module.cost(d, world_size, ITEM_BYTES).wire_bytes
            assert least <= received(d, world_size) * ITEM_BYTES


@pytest.mark.parametrize(
    ("slug", "owned"),
    [
        ("reduce", lambda d, w: [d.m * d.n] + [0] * (w - 1)),
        ("reducescatter", lambda d, w: [d.m * d.n] * w),
    ],
)
def test_sums_cost_what_their_owners_and_the_trees_of_additions_take(
    slug: str, owned: Callable[[Dims, int], list[int]]
) -> None:
    """W values become a sum in W-1 messages and additions, shared out among ranks; an owner
    receives at least its own sums."""
    module = problems.load(problems.find(slug))
    for world_size in module.problem.world_sizes:
        d = module.dims(48, 40, world_size)
        sums_of = owned(d, world_size)
        shared = (world_size - 1) * sum(sums_of) / world_size
        cost = module.cost(d, world_size, ITEM_BYTES)
        assert cost.wire_bytes == max(shared, *sums_of) * ITEM_BYTES
        assert cost.flops == shared


def test_known_ways_to_scatter_a_product_come_near_its_cost() -> None:
    module = problems.load(problems.find("gemm_reducescatter"))
    ways = [received for slug, received in WAYS if slug == "gemm_reducescatter"]
    for world_size in module.problem.world_sizes:
        for name, size in module.problem.sizes.items():
            d = module.dims(size.m, size.n, world_size)
            least = module.cost(d, world_size, ITEM_BYTES).wire_bytes
            best = min(way(d, world_size) for way in ways) * ITEM_BYTES
            assert best < 3 * least
            assert best == least or not (name == "large" or world_size == 2)
