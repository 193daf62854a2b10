"""Draws patterns that only the judge knows: between tensors, and where no output was written
yet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch

from evaluator.buffers.slab import GUARD_BYTES

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_GUARD_MARGIN = 2  # a band is at most so many times GUARD_BYTES long, with its alignment


@dataclass(frozen=True, kw_only=True)
class Canaries:
    """Derives one rank's patterns from the judge's secret."""

    secret: bytes
    rank: int

    def guard(self, device: torch.device) -> torch.Tensor:
        """Return the bytes of a guard band: uint8, longer than any band."""
        generator = torch.Generator().manual_seed(self._number("guard"))
        drawn = torch.randint(0, 256, (_GUARD_MARGIN * GUARD_BYTES,), generator=generator)
        return drawn.to(device, torch.uint8)

    def fill(self, view: torch.Tensor, dtype: torch.dtype) -> None:
        """Poison bytes in which elements of `dtype` belong."""
        view.view(_BITS[dtype.itemsize]).fill_(self.poison(dtype))

    def unwritten(self, got: torch.Tensor) -> int:
        """Count elements that still hold the poison. An integer of one byte may do so honestly."""
        dtype = got.dtype
        if dtype.itemsize == 1 and dtype is not torch.bool:
            return 0
        return int((got.view(_BITS[dtype.itemsize]) == self.poison(dtype)).sum())

    def poison(self, dtype: torch.dtype) -> int:
        """Return the bits of an unwritten element: a secret NaN payload, or a secret integer."""
        secret = self._number(f"poison {dtype}")
        if dtype is torch.bool:
            return 2 + secret % 250
        bits = dtype.itemsize * 8
        if dtype.is_floating_point and dtype.itemsize > 1:
            mantissa = {2: 7 if dtype is torch.bfloat16 else 10, 4: 23, 8: 52}[dtype.itemsize]
            exponent = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
            quiet = 1 << (mantissa - 1)
            return exponent | quiet | (1 + secret % (quiet - 1))
        return secret % (1 << (bits - 1)) if bits > 8 else secret % 256

    def _number(self, label: str) -> int:
        digest = hashlib.sha256(self.secret + f"{label} {self.rank}".encode()).digest()
        return int.from_bytes(digest[:7], "little")
