"""Bounds from below the time that hardware allows a call, and finds times that cannot be true.

Standard library only. The roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009) with
the wire as a further roof, for data of the run's dtype on a node whose switch does not reduce or
multicast, with the datasheet's rates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluator.messages.job import Dtype
from evaluator.messages.roofline_bounds import RooflineBounds, positive_us
from evaluator.timing.limits import HardwareLimits

if TYPE_CHECKING:
    from problems.spec import Cost

# Clocks above the datasheet's, rounded datasheets, costs that are averages over random routing.
MARGIN = 0.9
# A cost counts the multiplications of the definition. Other algorithms need fewer: Winograd's for
# 3 x 3 filters and 4 x 4 outputs a quarter (36 instead of 144), Strassen's 7 of 8 a level.
FEWER_FLOPS = 4.0


def roofline_bounds(
    cost: Cost, dtype: Dtype, limits: HardwareLimits, batch_calls: int
) -> RooflineBounds:
    """Return the bounds of a call among `batch_calls` back to back (1 since judge 10).

    When the clock stops, up to one L2 of outputs need not have reached memory. A latency that is
    not known counts as 0. Raises ValueError for less than one call.
    """
    if batch_calls < 1:
        raise ValueError(f"a batch has at least one call, not {batch_calls}")
    written_late = limits.l2_bytes / batch_calls
    return RooflineBounds(
        wire_us=cost.wire_bytes / (limits.link_gb_s * 1e3),
        hbm_us=max(0.0, cost.hbm_bytes - written_late) / (limits.hbm_gb_s * 1e3),
        flops_us=cost.flops / (_matrix_tflop_s(dtype, limits) * 1e6),
        latency_us=cost.exchanges * (limits.latency_us or 0.0),
    )


def unbeatable_us(bounds: RooflineBounds) -> float:
    """Return the microseconds that no call can beat.

    Latency is left out, as it is not the datasheet's. Arithmetic counts as far as no algorithm is
    known to save it.
    """
    return max(bounds.wire_us, bounds.hbm_us, bounds.flops_us / FEWER_FLOPS)


def exceeds_roofline(bounds: RooflineBounds, kernel_us: float) -> bool:
    """Return whether a time cannot be true of a kernel that did all the work in the run's dtype.

    Raises ValueError unless the time is positive.
    """
    return positive_us(kernel_us) < MARGIN * unbeatable_us(bounds)


def _matrix_tflop_s(dtype: Dtype, limits: HardwareLimits) -> float:
    """Return the highest rate at which inputs of this dtype can be multiplied.

    float32 counts as TF32, which every way to float32's accuracy on matrix units stays below.
    Faster formats of 8 bits lose accuracy that the tolerances ask for.
    """
    rates = limits.matrix_tflop_s
    return {
        Dtype.FLOAT32: rates.tensorfloat32,
        Dtype.BFLOAT16: rates.bfloat16,
        Dtype.FLOAT16: rates.float16,
    }[dtype]
