"""The least time that hardware allows a call, and whether a measured time can be true.

Standard library only. Floors are for data of the run's dtype on a node whose switch does not reduce
or multicast, with the datasheet's rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluator.messages.job import Dtype
from evaluator.timing.limits import HardwareLimits

if TYPE_CHECKING:
    from problems.spec import Cost

# Clocks above the datasheet's, rounded datasheets, costs that are averages over random routing.
MARGIN = 0.9
# A cost counts the multiplications of the definition. Other algorithms need fewer: Winograd's for
# 3 x 3 filters and 4 x 4 outputs a quarter (36 instead of 144), Strassen's 7 of 8 a level.
FEWER_FLOPS = 4.0


@dataclass(frozen=True, kw_only=True)
class Floors:
    """Least microseconds of one call, each as if nothing else took time."""

    wire_us: float
    hbm_us: float
    flops_us: float
    latency_us: float

    @property
    def bound_us(self) -> float:
        return max(self.wire_us, self.hbm_us, self.flops_us, self.latency_us)

    @property
    def limiter(self) -> str:
        """`wire`, `hbm`, `flops` or `latency`: which floor is the bound."""
        named = {
            "wire": self.wire_us,
            "hbm": self.hbm_us,
            "flops": self.flops_us,
            "latency": self.latency_us,
        }
        return max(named, key=lambda name: named[name])

    @property
    def light_us(self) -> float:
        """What no burst can beat on average, however its calls are done.

        Latency is left out: the calls of a burst need nothing of each other, so all may wait for
        their exchanges at once. Arithmetic counts as far as no algorithm is known to save it.
        """
        return max(self.wire_us, self.hbm_us, self.flops_us / FEWER_FLOPS)


def floors(cost: Cost, dtype: Dtype, limits: HardwareLimits, burst_calls: int) -> Floors:
    """For a call among `burst_calls` back to back that begin with cold caches.

    When the clock stops, up to one L2 of outputs need not have reached memory. A latency that is
    not known counts as 0.
    """
    if burst_calls < 1:
        raise ValueError(f"a burst has at least one call, not {burst_calls}")
    written_late = limits.l2_bytes / burst_calls
    return Floors(
        wire_us=cost.wire_bytes / (limits.link_gb_s * 1e3),
        hbm_us=max(0.0, cost.hbm_bytes - written_late) / (limits.hbm_gb_s * 1e3),
        flops_us=cost.flops / (_matrix_tflop_s(dtype, limits) * 1e6),
        latency_us=cost.exchanges * (limits.latency_us or 0.0),
    )


def utilisation(floors: Floors, kernel_us: float) -> float:
    """The bound over a measured time: 1.0 is as fast as the datasheet allows.

    More is possible without magic where the calls of a burst overlap their latencies, or where an
    algorithm saves arithmetic that the cost counts.
    """
    return floors.bound_us / _positive(kernel_us)


def is_faster_than_light(floors: Floors, kernel_us: float) -> bool:
    """Whether a time cannot be true of a kernel that did all the work in the run's dtype."""
    return _positive(kernel_us) < MARGIN * floors.light_us


def _positive(kernel_us: float) -> float:
    if not kernel_us > 0:
        raise ValueError(f"a time must be positive, not {kernel_us} us")
    return kernel_us


def _matrix_tflop_s(dtype: Dtype, limits: HardwareLimits) -> float:
    """The highest rate at which inputs of this dtype can be multiplied.

    float32 counts as TF32, which every way to float32's accuracy on matrix units stays below.
    Faster formats of 8 bits lose accuracy that the tolerances ask for.
    """
    rates = limits.matrix_tflop_s
    return {
        Dtype.FLOAT32: rates.tensorfloat32,
        Dtype.BFLOAT16: rates.bfloat16,
        Dtype.FLOAT16: rates.float16,
    }[dtype]
