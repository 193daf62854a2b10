"""Give a rank its view of a trial, and the only source of randomness for its inputs.

Two profiles. `upstream` repeats PKB's generator: one stream per rank, seeded 42 + 1000*number +
rank + 1000003*trial, and published values wherever nothing was drawn. `hardened` draws everything,
from streams seeded by SHA-256 over the judge's secret: a submission can know no more than shapes.
Draws happen in a fixed order, so the same arguments give the same inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import torch
from torch import Tensor, nn

from problems.spec import GroupRef
from problems.trials import TrialSpec, secret_int, secret_turn
from problems.values import linear

T = TypeVar("T")

GAIN_LOW, GAIN_HIGH = 0.75, 1.5


@dataclass(frozen=True, kw_only=True)
class RankContext:
    """Draw one rank's inputs."""

    rank: int
    world_size: int
    number: int
    spec: TrialSpec
    profile: str
    secret: bytes
    dtype: torch.dtype
    device: torch.device
    _streams: dict[str, torch.Generator] = field(default_factory=dict, repr=False)
    _choices: count[int] = field(default_factory=count, repr=False)

    @property
    def turn(self) -> int:
        """Return the number that published lengths may depend on, in trials and timed calls."""
        return self.spec.turn

    @property
    def _hardened(self) -> bool:
        return self.profile == "hardened"

    def randn(self, *shape: int, shared: bool = False, dtype: torch.dtype | None = None) -> Tensor:
        """Draw normal values in `dtype`, by default the run's; `shared`: the same on every rank.

        Hardened values carry the trial's scale and mean and a hidden gain of their own, so that a
        rank cannot estimate another rank's norm from its own.
        """
        dtype = dtype or self.dtype
        if not self._hardened:
            return torch.randn(shape, generator=self._upstream(), dtype=dtype, device=self.device)
        stream = self._stream(shared)
        gain = torch.rand((), generator=stream, device=self.device)
        gain = GAIN_LOW + (GAIN_HIGH - GAIN_LOW) * gain
        drawn = torch.float64 if dtype is torch.float64 else torch.float32
        values = torch.randn(shape, generator=stream, dtype=drawn, device=self.device)
        # In place: one table of problem 68 takes 28 GB in float32.
        return values.mul_(self.spec.scale * gain).add_(self.spec.shift).to(dtype)

    def rand(self, *shape: int, shared: bool = False, dtype: torch.dtype | None = None) -> Tensor:
        """Draw uniform values in [0, 1), in `dtype` or the run's; trials do not change them."""
        stream = self._stream(shared) if self._hardened else self._upstream()
        dtype = dtype or self.dtype
        return torch.rand(shape, generator=stream, dtype=dtype, device=self.device)

    def randint(self, low: int, high: int, *shape: int, shared: bool = False) -> Tensor:
        """Draw uniform int64 values in low..high-1, as PKB does too (see `integers` otherwise)."""
        stream = self._stream(shared) if self._hardened else self._upstream()
        return torch.randint(low, high, shape, generator=stream, device=self.device)

    def randperm(self, length: int, *, shared: bool = False) -> Tensor:
        """Draw 0..length-1 in random order, as PKB does too (see `sample` otherwise)."""
        stream = self._stream(shared) if self._hardened else self._upstream()
        return torch.randperm(length, generator=stream, device=self.device)

    def linear(self, inside: int, outside: int, gains: Tensor | None = None) -> nn.Linear:
        """Make a layer from `inside` to `outside` features with bias, in the run dtype, for
        features that were multiplied by `gains`.

        Upstream: torch's default initialisation, from the generator of the CPU wherever the rest
        is drawn. Hardened: normal weights of the same spread, and biases ten times as large.
        """
        if self._hardened:
            stream, spread = self._stream(False), (3 * inside) ** -0.5
            weight = spread * torch.randn(outside, inside, generator=stream, device=self.device)
            bias = 10 * spread * torch.randn(outside, generator=stream, device=self.device)
        else:
            stream, bound = self._upstream("cpu"), inside**-0.5
            weight, bias = torch.empty(outside, inside), torch.empty(outside)
            nn.init.kaiming_uniform_(weight, a=5**0.5, generator=stream)
            nn.init.uniform_(bias, -bound, bound, generator=stream)
        weight = weight.to(self.device, self.dtype)
        if gains is not None:
            weight = weight / gains
        return linear(weight, bias.to(self.device, self.dtype))

    def reseed_upstream(self, offset: int) -> None:
        """Draw on, under upstream, from 42 + 1000*number + 1000003*trial + offset: for some tensors
        PKB adds something else than the rank. Hardened draws stay as they are."""
        for device in {self.device.type, "cpu"}:
            self._streams.pop(f"upstream {device}", None)
            self._seeded(f"upstream {device}", self._upstream_seed + offset, device)

    def filled(self, value: float, *shape: int, shared: bool = False) -> Tensor:
        """Return that constant (upstream) or random values as `randn` draws them (hardened)."""
        if self._hardened:
            return self.randn(*shape, shared=shared)
        return torch.full(shape, value, dtype=self.dtype, device=self.device)

    def varied(self, published: Tensor, *, spread: float = 1.0, shared: bool = False) -> Tensor:
        """Return the published values in the run dtype (upstream) or normal ones of that standard
        deviation (hardened)."""
        if not self._hardened:
            return published.to(self.device, self.dtype)
        stream = self._stream(shared)
        values = torch.randn(published.shape, generator=stream, device=self.device)
        return (spread * values).to(self.dtype)

    def gains(self, *shape: int, share: float = 1 / 64, shared: bool = False) -> Tensor:
        """Return ones (upstream) or 8 for a secret share of values and 1/2 for the rest (hardened):
        8 bits with a scale for each block of values lose the small ones beside a large one.

        Powers of two round nothing, so what is divided by them later is as it would have been.
        """
        if not self._hardened:
            return torch.ones(shape, dtype=self.dtype, device=self.device)
        drawn = torch.rand(shape, generator=self._stream(shared), device=self.device)
        return torch.where(drawn < share, 8.0, 0.5).to(self.dtype)

    def integers(self, published: Tensor, low: int, high: int, *, shared: bool = False) -> Tensor:
        """Return the published int64 values (upstream) or as many, uniform in low..high-1."""
        if not self._hardened:
            return published.to(self.device)
        stream = self._stream(shared)
        return torch.randint(low, high, published.shape, generator=stream, device=self.device)

    def sample(self, published: Tensor, population: int, *, shared: bool = False) -> Tensor:
        """Return the published ids (upstream) or as many distinct ones out of 0..population-1."""
        if not self._hardened:
            return published.to(self.device)
        order = torch.randperm(population, generator=self._stream(shared), device=self.device)
        return order[: published.numel()].view_as(published)

    def peaked(self, values: Tensor, factor: float) -> Tensor:
        """Return the values (upstream), or with eight at hidden places, the last one among them, so
        many times as large (hardened): no sample tells what all of them sum up to."""
        if not self._hardened:
            return values
        places = torch.randint(
            values.numel(), (8,), generator=self._stream(False), device=self.device
        )
        places[0] = values.numel() - 1
        peaks = values.flatten()
        peaks[places] *= factor
        return peaks.view_as(values)

    def choose(self, published: T, options: Sequence[T]) -> T:
        """Return the published value (upstream) or one option, the same on every rank (hardened).

        Options come in a secret order in which few trials or timed calls in a row meet all.
        """
        parts = self._parts("choice")
        if not self._hardened:
            return published
        if self.spec.is_plain:
            return options[0]
        return options[secret_turn(self.secret, len(options), self.turn, *parts)]

    def choose_untimed(self, published: T, options: Sequence[T]) -> T:
        """Choose as `choose` does; timed calls get the first option, as another one would change
        their shapes and work."""
        chosen = self.choose(published, options)
        return options[0] if self._hardened and self.spec.timed else chosen

    def ragged(self, published: Sequence[T], options: Sequence[T]) -> list[T]:
        """Return a value for each rank: those published (upstream) or options (hardened).

        Each trial and timed call has another secret order, in which no two ranks have the same
        option before each option has been given to one.
        """
        parts = self._parts("ragged")
        if not self._hardened or self.spec.is_plain:
            return list(published)
        return [
            options[secret_turn(self.secret, len(options), rank, *parts, self.turn)]
            for rank in range(self.world_size)
        ]

    def pick(self, published: T, hardened: T) -> T:
        """Return the first (upstream) or second value; draw both in any case, each in its place."""
        return hardened if self._hardened else published

    def group(self, axis: str) -> GroupRef:
        """Return a stand-in for the process group along an axis of the mesh, or `world`."""
        return GroupRef(axis=axis)

    def _parts(self, kind: str) -> tuple[object, ...]:
        """Return what tells this choice from all others of a trial, and timed calls from trials."""
        return self.number, kind, next(self._choices), "timed" if self.spec.timed else "trial"

    @property
    def _upstream_seed(self) -> int:
        return 42 + 1000 * self.number + 1000003 * self.spec.trial

    def _upstream(self, device: str | None = None) -> torch.Generator:
        device = device or self.device.type
        return self._seeded(f"upstream {device}", self._upstream_seed + self.rank, device)

    def _stream(self, shared: bool) -> torch.Generator:
        owner = "shared" if shared else f"rank {self.rank}"
        seed = secret_int(self.secret, self.number, self.spec.trial, owner)
        return self._seeded(owner, seed, self.device.type)

    def _seeded(self, name: str, seed: int, device: str) -> torch.Generator:
        if name not in self._streams:
            where = self.device if device == self.device.type else torch.device(device)
            self._streams[name] = torch.Generator(where).manual_seed(seed)
        return self._streams[name]
