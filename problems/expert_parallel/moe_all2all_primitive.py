"""An all-to-all in which every pair of ranks agrees on its own number of rows."""

from itertools import pairwise

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem

problem = Problem(
    number=27,
    title="MoE all-to-all with split sizes",
    source="ByteDance-Seed/VeOmni",
    domain="LLM training",
    summary="Exchange rows of a token matrix between ranks by given send and receive counts.",
    statement="local_tensor is [tokens, H], its rows ordered by the rank they go to: the first "
    "input_split_sizes[0] rows go to rank 0 of the group, the next input_split_sizes[1] to rank "
    "1, and so on, this rank's own among them. output_split_sizes[s] rows arrive from rank s. "
    "Return a new contiguous tensor [sum(output_split_sizes), H] in the same dtype: the rows "
    "from rank 0, then those from rank 1, and so on, each part in the order in which it was "
    "sent. The argument must stay as it is. Both splits are lists of W integers on the host that "
    "fit together over the ranks, or both are None: then every rank sends each rank the same "
    "number of rows, tokens / W. Splits may be uneven, and some may be 0. H and the splits may "
    "be anything and may differ from call to call. W is the size of group; None means the "
    "default process group.",
    outputs=("received",),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="values are moved, not computed",
    known_issues=(
        "PKB's splits are equal, so a plain all-to-all that ignores them passes there.",
        "Where W does not divide M, PKB's splits do not fit together; M is rounded up here.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """M is rounded up to a multiple of the world size."""
    return Dims(m=m, n=n, rows=-(-m // world_size) * world_size)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    world = ctx.world_size
    start = ctx.choose(0, range(2 * world - 1))

    def uneven(source: int) -> list[int]:
        """How many rows a rank sends to each."""
        weights = [(source**2 + 2 * to + start) % (2 * world - 1) for to in range(world)]
        ends = [d.rows * sum(weights[:to]) // sum(weights) for to in range(world + 1)]
        return [end - start for start, end in pairwise(ends)]

    equal = [d.rows // world] * world
    splits = ctx.choose(
        (equal, equal),
        (
            (equal, equal),
            (uneven(ctx.rank), [uneven(source)[ctx.rank] for source in range(world)]),
            (None, None),
        ),
    )
    return {
        "local_tensor": ctx.randn(d.rows, d.n),
        "input_split_sizes": splits[0],
        "output_split_sizes": splits[1],
        "group": None,
    }


def reference(
    local_tensor: torch.Tensor,
    input_split_sizes: list[int] | None = None,
    output_split_sizes: list[int] | None = None,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    rows = len(local_tensor) if output_split_sizes is None else sum(output_split_sizes)
    received = local_tensor.new_empty(rows, *local_tensor.shape[1:])
    sent = local_tensor.contiguous()
    dist.all_to_all_single(received, sent, output_split_sizes, input_split_sizes, group=group)
    return received


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    full = d.rows * d.n * itemsize
    return Cost(wire_bytes=all_to_all_bytes(full, world_size), flops=0, hbm_bytes=2 * full)
