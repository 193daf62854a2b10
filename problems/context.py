"""One rank's view of a trial, and the only source of randomness for inputs.

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
from torch import Tensor

from problems.spec import GroupRef
from problems.trials import TrialSpec, secret_int

T = TypeVar("T")

GAIN_LOW, GAIN_HIGH = 0.75, 1.5


@dataclass(frozen=True, kw_only=True)
class RankContext:
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
        """What shapes may depend on: the trial, but nothing while timed."""
        return 0 if self.spec.timed else self.spec.trial

    @property
    def _hardened(self) -> bool:
        return self.profile == "hardened"

    def randn(self, *shape: int, shared: bool = False) -> Tensor:
        """Normal values in the run dtype; `shared`: the same on every rank.

        Hardened values carry the trial's scale and mean and a hidden gain of their own, so that a
        rank cannot estimate another rank's norm from its own.
        """
        if not self._hardened:
            return torch.randn(
                shape, generator=self._upstream(), dtype=self.dtype, device=self.device
            )
        stream = self._stream(shared)
        gain = torch.rand((), generator=stream, device=self.device)
        gain = GAIN_LOW + (GAIN_HIGH - GAIN_LOW) * gain
        values = torch.randn(shape, generator=stream, device=self.device)
        return (self.spec.scale * gain * values + self.spec.shift).to(self.dtype)

    def filled(self, value: float, *shape: int, shared: bool = False) -> Tensor:
        """Upstream: that constant. Hardened: random values as `randn` draws them."""
        if self._hardened:
            return self.randn(*shape, shared=shared)
        return torch.full(shape, value, dtype=self.dtype, device=self.device)

    def varied(self, published: Tensor, *, spread: float = 1.0, shared: bool = False) -> Tensor:
        """Upstream: the published values in the run dtype. Hardened: normal, of that spread."""
        if not self._hardened:
            return published.to(self.device, self.dtype)
        stream = self._stream(shared)
        values = torch.randn(published.shape, generator=stream, device=self.device)
        return (spread * values).to(self.dtype)

    def integers(self, published: Tensor, low: int, high: int, *, shared: bool = False) -> Tensor:
        """Upstream: the published int64 values. Hardened: as many, uniform in low..high-1."""
        if not self._hardened:
            return published.to(self.device)
        stream = self._stream(shared)
        return torch.randint(low, high, published.shape, generator=stream, device=self.device)

    def sample(self, published: Tensor, population: int, *, shared: bool = False) -> Tensor:
        """Upstream: the published ids. Hardened: as many distinct ones out of 0..population-1."""
        if not self._hardened:
            return published.to(self.device)
        order = torch.randperm(population, generator=self._stream(shared), device=self.device)
        return order[: published.numel()].view_as(published)

    def choose(self, published: T, options: Sequence[T]) -> T:
        """Upstream: the published value. Hardened: one option, the same on every rank.

        The options take turns from a secret start, so few trials meet all of them. The first one
        is timed: it has to be as hard to guess around as the others.
        """
        start = secret_int(self.secret, self.number, "choice", next(self._choices))
        if not self._hardened:
            return published
        return options[0 if self.spec.timed else (start + self.spec.trial) % len(options)]

    def pick(self, published: T, hardened: T) -> T:
        """Either of two ready values; draw both in any case, each in its place."""
        return hardened if self._hardened else published

    def group(self, axis: str) -> GroupRef:
        """A stand-in for the process group along an axis of the problem's mesh, or `world`."""
        return GroupRef(axis=axis)

    def _upstream(self) -> torch.Generator:
        return self._seeded(
            "upstream", 42 + 1000 * self.number + self.rank + 1000003 * self.spec.trial
        )

    def _stream(self, shared: bool) -> torch.Generator:
        owner = "shared" if shared else f"rank {self.rank}"
        return self._seeded(owner, secret_int(self.secret, self.number, self.spec.trial, owner))

    def _seeded(self, name: str, seed: int) -> torch.Generator:
        if name not in self._streams:
            self._streams[name] = torch.Generator(self.device).manual_seed(seed)
        return self._streams[name]
