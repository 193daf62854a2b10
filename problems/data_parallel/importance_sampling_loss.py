"""Policy-gradient loss with importance ratios, averaged over all ranks' tokens."""

import math

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.importance_ratios import log_ratios
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=25,
    title="Importance-sampling policy-gradient loss",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="Token log-probabilities, clamped importance ratios and globally averaged loss terms.",
    statement="hidden_states, [T, H], are this rank's tokens and weight, [V, H], its projection to "
    "V logits, hidden_states @ weight^T. labels are T int64 target ids; tokens whose label is "
    "ignore_index are left out, the others lie in 0 to V-1. old_logprobs and advantages are [T], "
    "of the dtype of hidden_states and weight. For every token that counts: c is the cross "
    "entropy of its logits and label, d = -c - old_logprobs clamped to -20 to 20, ratio = e^d, "
    "and the token's loss -ratio * advantage. Averages run over the tokens that count on all "
    "ranks of the default process group (divided by 1 if there are none). Return a tuple of "
    "(1) the average of the tokens' losses, a float32 scalar; (2) None; (3) -c and (4) the loss "
    "of each of this rank's tokens, in the shape of labels and the dtype of hidden_states, 0 for "
    "tokens left out; (5) float32 [5]: average, minimum and maximum of ratio, average of "
    "e^d - d - 1, and average of c. (1) and (5) are the same on every rank. Logits and -c may "
    "round to the dtype of hidden_states; softmax, exponentials and averages take float32. All "
    "arguments, weight included, differ from rank to rank, apart from ignore_index, which may "
    "differ from call to call; no gradients are asked. T and H may be any positive integers.",
    outputs=("loss", "log_probs", "token_losses", "metrics"),
    sizes=sizes(tiny=(256, 12), large=(4096, 1024)),
    tolerances=tolerances(float32=2e-5, bfloat16=4e-2, float16=4e-3),
    output_tolerances={"loss": tolerances(float32=2e-5, bfloat16=3e-3, float16=3e-4)},
    tolerance_reason="logits and -c may round to the run dtype before the exponential (0.016 in "
    "bfloat16, 0.0005 in the average of all tokens' losses); inputs cut to 3 bits of mantissa are "
    "off by 0.3, averages of one rank by more, a loss that leaves one token out by 0.01",
    known_issues=(
        "Upstream's cross entropy is about 130, so nearly every ratio is clamped to e^-20: losses "
        "and ratios vanish within PKB's tolerance, and only (3) and half of (5) are checked.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """V = 125 n / 4, which is PKB's fixed 32000 at n = 1024."""
    return Dims(m=m, n=n, vocab=max(64, 125 * n // 4))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened: a bias in feature 0 makes 8 ids likely; labels are among them, so that -c stays
    small enough for 16 bits. Few tokens, the last one among them, have a hundredth of all losses
    each."""
    hidden, weight = ctx.randn(d.m, d.n), ctx.randn(d.vocab, d.n)
    labels = ctx.randint(0, d.vocab, d.m)
    old, advantages = ctx.randn(d.m), ctx.randn(d.m)
    ignore_index = ctx.choose(-100, (-100, -1))

    def harden() -> tuple[torch.Tensor, ...]:
        likely = ctx.sample(torch.arange(8), d.vocab)
        likely[0] = d.vocab - 1
        states = ctx.varied(torch.zeros(d.m, d.n))
        states[:, 0] = 1
        projection = ctx.varied(torch.zeros(d.vocab, d.n), spread=d.n**-0.5)
        projection[:, 0] = -math.log(d.vocab / 8)
        projection[likely, 0] = 0
        counts, ratios = log_ratios(ctx, d.m)
        targets = likely[ctx.integers(labels, 0, 8)].where(counts, ignore_index)
        log_probs = -_cross_entropy(states, projection, targets, ignore_index)
        worth = advantages + ctx.spec.scale * (1 + 2 * ctx.rand(1))
        worth[-1] = worth[-1].abs()  # else it might cancel all others
        weighty = ctx.peaked(worth, min(64, d.m * ctx.world_size / 100))
        return states, projection, targets, (log_probs - ratios).to(ctx.dtype), weighty

    published = (hidden, weight, labels, old, advantages)
    hidden, weight, labels, old, advantages = ctx.pick(lambda: published, harden)()
    return {
        "hidden_states": hidden,
        "weight": weight,
        "labels": labels,
        "old_logprobs": old,
        "advantages": advantages,
        "ignore_index": ignore_index,
    }


def _cross_entropy(
    hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, ignore_index: int
) -> torch.Tensor:
    """Per token, in float32 or better."""
    logits = hidden.reshape(-1, hidden.shape[-1]) @ weight.T
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return torch.nn.functional.cross_entropy(
        wide, labels.flatten(), ignore_index=ignore_index, reduction="none"
    )


def reference(
    hidden_states: torch.Tensor,
    weight: torch.Tensor,
    labels: torch.Tensor,
    old_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    ignore_index: int = -100,
) -> tuple[torch.Tensor, None, torch.Tensor, torch.Tensor, torch.Tensor]:
    c = _cross_entropy(hidden_states, weight, labels, ignore_index)
    counts = labels.flatten() != ignore_index
    delta = (-c - old_logprobs.flatten()).where(counts, 0).clamp(-20, 20)
    ratio = delta.exp()
    losses = (-ratio * advantages.flatten()).where(counts, 0)
    terms = [losses, ratio * counts, ratio - delta - 1, c, counts.to(c)]
    sums = torch.stack(terms).sum(dim=1)
    highest = ratio.where(counts, -torch.inf).max()
    lowest = ratio.where(counts, torch.inf).min()
    extremes = torch.stack([-lowest, highest])
    dist.all_reduce(sums)
    dist.all_reduce(extremes, op=dist.ReduceOp.MAX)
    loss, mean_ratio, k3, entropy = sums[:4] / sums[4].clamp(min=1)
    metrics = torch.stack([mean_ratio, -extremes[0], extremes[1], k3, entropy])
    log_probs, token_losses = torch.stack([-c, losses]).to(weight.dtype).view(2, *labels.shape)
    return loss, None, log_probs, token_losses, metrics


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of ranks that leave out the fewest tokens, which is an eighth under `hardened`."""
    counted = 7 / 8 * d.m
    logits, read = counted * d.vocab, counted * (d.n + 2) + d.vocab * d.n
    return Cost(
        wire_bytes=all_reduce_bytes(4 + 6 * itemsize, world_size),
        flops=2 * logits * d.n + 5 * logits,
        hbm_bytes=read * itemsize + d.m * (8 + 2 * itemsize) + 24,
    )
