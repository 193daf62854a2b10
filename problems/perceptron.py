"""Draw the two-layer perceptron that the training steps 40, 41, 42 and 47 start from.

Under `hardened`, every block, row and column of W1's gradient has few large values. One scale for
8-bit values of a block then loses the small ones. Adam divides each gradient by its own size, so
the loss shows in the new weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from problems.context import RankContext
from problems.kinks import clear_biases
from problems.spec import Dims

SENDS_WEIGHTS = (41, 42)  # problems whose ranks send new weights to each other
FEW = 1 / 16  # share of the features that are 16 times as large
# lr, beta1, beta2, eps and step. New weights are mostly their steps, whatever the weights were. An
# epsilon is as large as many of the square roots that it is added to.
STEPS = ((2.0, 0.9, 0.999, 1e-8, 3), (0.5, 0.8, 0.997, 0.03, 20), (4.0, 0.95, 0.998, 0.1, 2))


@dataclass(frozen=True, kw_only=True)
class Network:
    """Hold the batches of all W ranks, x and y [W * B, D], and the weights W1, b1, W2 and b2."""

    x: Tensor
    y: Tensor
    weights: list[Tensor]


def sharded_dims(m: int, n: int, world_size: int) -> Dims:
    """Return widths n/4, n/2 and n/4, PKB's shape at n = 1024. W divides the number of weights."""
    rows, width, hidden = -(-m // world_size), max(16, n // 4), max(32, n // 2)
    while (hidden * (2 * width + 1) + width) % world_size:  # 2 * width + 1 is odd, and W is 2^k
        hidden += 1
    params = hidden * (2 * width + 1) + width
    part = params // world_size
    return Dims(m=m, n=n, rows=rows, width=width, hidden=hidden, params=params, part=part)


def draw_step(ctx: RankContext) -> dict[str, float]:
    """Draw Adam's scalars, by the names that every reference gives them."""
    step = ctx.choose((1e-3, 0.9, 0.999, 1e-8, 1 + ctx.turn % 7), STEPS)
    return dict(zip(("lr", "beta1", "beta2", "eps", "step"), step, strict=True))


def draw_network(ctx: RankContext, d: Dims) -> Network:
    """Draw the network and all batches, the same on every rank."""
    # Ranks' batches lean different ways, so that no rank's gradient resembles the mean.
    lean = ctx.filled(0.0, ctx.world_size, d.width, shared=True).repeat_interleave(d.rows, 0)
    x = ctx.randn(ctx.world_size * d.rows, d.width, shared=True) + lean
    # Spreads by which o stays as large as y, and float16 holds every g^2, at all scales.
    y = ctx.varied(ctx.randn(*x.shape), spread=d.hidden**0.75 / 2, shared=True)
    # Few rows count for most, among them the last of each batch: none can be left out.
    rows = ctx.gains(ctx.world_size, d.rows, shared=True)
    rows[:, -1] = ctx.pick(1.0, 16.0)
    w1 = ctx.varied(ctx.randn(d.hidden, d.width), spread=d.width**-0.25, shared=True)
    # Rounding switches no unit on or off.
    b1 = ctx.pick(ctx.randn(d.hidden), clear_biases(x.float() @ w1.float().T).to(ctx.dtype))
    w2 = ctx.varied(ctx.randn(d.width, d.hidden), spread=0.25 / ctx.spec.scale, shared=True)
    b2 = ctx.varied(ctx.randn(d.width), shared=True)
    features = ctx.gains(d.width, share=FEW, shared=True) * ctx.pick(1, 2)
    return Network(x=x * features, y=y * rows.view(-1, 1), weights=[w1 / features, b1, w2, b2])


def draw_moments(
    ctx: RankContext, network: Network, beta1: float, beta2: float
) -> tuple[list[Tensor], list[Tensor]]:
    """Draw Adam's moments, in the shapes of the weights: zeros under `upstream`.

    The first is as large as what its gradient adds, so neither can be left out. The second is four
    times as large, so that Adam's division leaves a wrong gradient as wrong as it was. Where
    new weights travel, those of biases and few others, and so their new weights, are 32 times as
    large in every other trial: 8-bit values of a block of new weights then lose the rest.
    """
    first, second, least = [], [], ctx.pick(0.0, torch.finfo(ctx.dtype).tiny)
    sends_weights = ctx.number in SENDS_WEIGHTS
    more = ctx.choose(0, (31, 0)) if sends_weights else 0
    for gradient, size in zip(*_gradients(network, ctx.world_size), strict=True):
        m, v = (ctx.varied(torch.zeros_like(size)).double() for _ in range(2))
        # A bias's gradient adds all rows up: were it cancelled, only its rounding would be left.
        m = ctx.pick(m, m.abs() * gradient.sign()) if m.dim() == 1 else m
        if sends_weights:
            m *= 1 + more * (ctx.gains(*m.shape, share=1 / 32 if m.dim() > 1 else 1.0) > 1)
        first.append((m * (1 - beta1) * size).to(ctx.dtype))
        v = (v.square() + ctx.pick(0.0, 3.0)) * (1 - beta2) * size.square()
        second.append(v.clamp(min=least).to(ctx.dtype))
    return first, second


def _gradients(network: Network, world_size: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return the sum of all ranks' gradients, and the sizes that rounding errors are relative to.

    Squares of inputs and weights, sent through the same network, sum up the squares of all terms:
    a size is no smaller where terms cancel. Nor is it where the gradients of ranks do.
    """
    weights = [weight.float() for weight in network.weights]
    total = [torch.zeros_like(weight, dtype=torch.float64) for weight in weights]
    squares = [torch.zeros_like(sum_) for sum_ in total]
    parts = (network.x.float().chunk(world_size), network.y.float().chunk(world_size))
    for x, y in zip(*parts, strict=True):
        is_on = linear(x, *weights[:2]) > 0
        own = _sums(x, -y, weights, is_on)
        terms = _sums(x.square(), y.square(), [weight.square() for weight in weights], is_on)
        for index, (g, g_squares) in enumerate(zip(own, terms, strict=True)):
            total[index] += g * (2 / network.y.numel())
            squares[index] += (g_squares + g.square()) * (2 / network.y.numel()) ** 2
    return total, [sum_.sqrt() for sum_ in squares]


def _sums(x: Tensor, minus_y: Tensor, weights: list[Tensor], is_on: Tensor) -> list[Tensor]:
    """Return the sums over rows, in float64, that the gradients of the squared error are."""
    w1, b1, w2, b2 = weights
    h = linear(x, w1, b1) * is_on
    d_o = linear(h, w2, b2) + minus_y
    d_h = (d_o @ w2) * is_on
    return [g.double() for g in (d_h.T @ x, d_h.sum(dim=0), d_o.T @ h, d_o.sum(dim=0))]
