"""Holds the least times that hardware allows a call, as a report carries them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RooflineBounds:
    """Holds the least microseconds of one call, each as if nothing else took time."""

    wire_us: float
    hbm_us: float
    flops_us: float
    latency_us: float

    @property
    def bound_us(self) -> float:
        """Return the largest of the four."""
        return max(self.wire_us, self.hbm_us, self.flops_us, self.latency_us)

    @property
    def limiter(self) -> str:
        """Return which of them it is: `wire`, `hbm`, `flops` or `latency`."""
        named = {
            "wire": self.wire_us,
            "hbm": self.hbm_us,
            "flops": self.flops_us,
            "latency": self.latency_us,
        }
        return max(named, key=lambda name: named[name])

    def utilisation(self, kernel_us: float) -> float:
        """Return the bound over a measured time: 1.0 is as fast as the datasheet allows.

        More is possible where an algorithm saves arithmetic that the cost counts. Raises ValueError
        unless the time is positive.
        """
        return self.bound_us / positive_us(kernel_us)


def positive_us(time_us: float) -> float:
    """Return the time. Raises ValueError unless it is positive."""
    if not time_us > 0:
        raise ValueError(f"a time must be positive, not {time_us} us")
    return time_us
