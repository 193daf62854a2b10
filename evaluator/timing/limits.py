"""Lists what the vendors state for the accelerators of a judging host. Standard library only.

Rates are those of data without structured sparsity, at the clock that the datasheet assumes. A GPU
may clock a few per cent higher: Hopper's matrix rates are given for 1.83 GHz, and H200s run at up
to 1.98 GHz while the power budget lasts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MatrixRates:
    """Holds dense TFLOP/s by type of the inputs, on matrix units where the GPU has some for it.

    `tensorfloat32` is what float32 inputs reach when they may lose mantissa bits; `float32` keeps
    them. None where the GPU has no such unit.
    """

    bfloat16: float
    float16: float
    tensorfloat32: float
    float32: float
    float64: float
    float8: float | None


@dataclass(frozen=True, kw_only=True)
class HardwareLimits:
    """Holds the limits of each GPU of a node. `link_gb_s` is one way, all links to other GPUs
    together.

    `l2_bytes` is what the driver reports. `latency_us` is the least time from a GPU's write until
    another GPU sees it; None where nobody has measured it.
    """

    gpu: str
    link_gb_s: float
    hbm_gb_s: float
    l2_bytes: int
    matrix_tflop_s: MatrixRates
    source: str
    latency_us: float | None = None


_HOPPER = MatrixRates(
    bfloat16=989.5,
    float16=989.5,
    tensorfloat32=494.7,
    float32=67.0,
    float64=67.0,
    float8=1979.0,
)
_AMPERE = MatrixRates(
    bfloat16=312.0,
    float16=312.0,
    tensorfloat32=156.0,
    float32=19.5,
    float64=19.5,
    float8=None,
)
_BLACKWELL = MatrixRates(
    bfloat16=2250.0,
    float16=2250.0,
    tensorfloat32=1125.0,
    float32=80.0,
    float64=40.0,
    float8=4500.0,
)

_H200 = HardwareLimits(
    gpu="H200 SXM",
    link_gb_s=450.0,
    hbm_gb_s=4800.0,
    l2_bytes=60 << 20,
    latency_us=0.9,
    matrix_tflop_s=_HOPPER,
    source="NVIDIA H200 datasheet, SXM column: 900 GB/s of NVLink 4 both ways together, 4.8 TB/s; "
    "matrix rates halved where they are given with sparsity; L2 as the driver reports it; "
    "latency measured (fixtures/calibration-h200x2.json)",
)
_H100 = HardwareLimits(
    gpu="H100 SXM",
    link_gb_s=450.0,
    hbm_gb_s=3350.0,
    l2_bytes=50 << 20,
    matrix_tflop_s=_HOPPER,
    source="NVIDIA H100 datasheet, SXM column: 900 GB/s of NVLink 4 both ways together, 3.35 TB/s; "
    "matrix rates halved where they are given with sparsity; 50 MB of L2",
)
_B200 = HardwareLimits(
    gpu="B200 SXM",
    link_gb_s=900.0,
    hbm_gb_s=8000.0,
    l2_bytes=132_644_864,
    matrix_tflop_s=_BLACKWELL,
    source="NVIDIA Blackwell architecture brief, HGX B200 at 1000 W: 1.8 TB/s of NVLink 5 both "
    "ways together, 8 TB/s; matrix rates halved where they are given with sparsity, TF32 taken as "
    "half of BF16; L2 as drivers report it",
)
_A100_80 = HardwareLimits(
    gpu="A100 SXM 80 GB",
    link_gb_s=300.0,
    hbm_gb_s=2039.0,
    l2_bytes=40 << 20,
    matrix_tflop_s=_AMPERE,
    source="NVIDIA A100 datasheet, 80 GB SXM column: 600 GB/s of NVLink 3 both ways together, "
    "2.039 TB/s; 40 MB of L2",
)
_A100_40 = HardwareLimits(
    gpu="A100 SXM 40 GB",
    link_gb_s=300.0,
    hbm_gb_s=1555.0,
    l2_bytes=40 << 20,
    matrix_tflop_s=_AMPERE,
    source="NVIDIA A100 datasheet, 40 GB SXM: 600 GB/s of NVLink 3 both ways together, "
    "1.555 TB/s; 40 MB of L2",
)

# Whole names: an `NVIDIA H200 NVL` or a slice `NVIDIA H200 MIG 1g.18gb` has other limits.
_BY_NAME = {
    "H200": _H200,
    "H100 80GB HBM3": _H100,
    "B200": _B200,
    "A100-SXM4-80GB": _A100_80,
    "A100-SXM4-40GB": _A100_40,
}


def limits_of(gpu_name: str) -> HardwareLimits | None:
    """Return the limits of a GPU as its driver names it, such as `NVIDIA H200`; None for what is
    not listed."""
    return _BY_NAME.get(gpu_name.strip().removeprefix("NVIDIA "))
