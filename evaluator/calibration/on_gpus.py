"""Measures what one process can of GPUs by itself: links by copies, memory, products, launches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import torch

LINK_BYTES = 256 << 20
MEMORY_BYTES = 4 << 30
SIDE = 8192
FLOAT64_SIDE = 4096
COPIES_AT_ONCE = 8
LAUNCHES = 1000

Measure = Callable[[], list[float]]


def event() -> torch.cuda.Event:
    """Return a CUDA event that takes times."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def event_us(call: Callable[[], object], samples: int, calls: int = 1) -> list[float]:
    """Return microseconds per call, by events on the current stream, after three samples' worth of
    warm-up."""
    for _ in range(3 * calls):
        call()
    torch.cuda.synchronize()
    marks = [event() for _ in range(samples + 1)]
    marks[0].record()
    for mark in marks[1:]:
        for _ in range(calls):
            call()
        mark.record()
    torch.cuda.synchronize()
    return [began.elapsed_time(ended) * 1e3 / calls for began, ended in pairwise(marks)]


def gb_s(nbytes: float, times_us: list[float]) -> list[float]:
    """Return the rates in GB/s at which so many bytes take these microseconds."""
    return [nbytes / us / 1e3 for us in times_us]


def block(nbytes: int, gpu: int) -> torch.Tensor:
    """Return random bytes on a GPU: uint8, [nbytes]."""
    return torch.empty(nbytes, dtype=torch.uint8, device=torch.device("cuda", gpu)).random_()


def link_gb_s(source: int, target: int) -> list[float]:
    """Return the rates in GB/s of copies from one GPU to another. Raises RuntimeError where it
    cannot reach it."""
    if not torch.cuda.can_device_access_peer(source, target):
        raise RuntimeError("this GPU cannot reach the other's memory")
    given = block(LINK_BYTES, source)
    got = block(LINK_BYTES, target)
    with torch.cuda.device(source):  # whose current stream does the copy
        times_us = event_us(lambda: got.copy_(given, non_blocking=True), samples=10)
    return gb_s(LINK_BYTES, times_us)


def turns_of_pairs(world_size: int) -> list[tuple[int, int]]:
    """Return every source with every target, in an order in which no two of W in a row share
    either."""
    gpus = range(world_size)
    return [(source, (source + step) % world_size) for step in gpus[1:] for source in gpus]


def links_gb_s(world_size: int) -> list[float]:
    """Return the rates in GB/s at which each GPU receives while all pairs copy. A copy takes part
    in a stream of each of its two GPUs."""
    pairs = turns_of_pairs(world_size)
    given = {pair: block(LINK_BYTES, pair[0]) for pair in pairs}
    got = {pair: block(LINK_BYTES, pair[1]) for pair in pairs}
    streams = {pair: [_stream(gpu) for gpu in pair] for pair in pairs}
    times_us = []
    for _ in range(8):
        _wait_for_all(world_size)
        began = time.perf_counter()
        for pair in pairs * COPIES_AT_ONCE:
            leaving, arriving = streams[pair]
            with torch.cuda.stream(arriving), torch.cuda.stream(leaving):
                got[pair].copy_(given[pair], non_blocking=True)
        _wait_for_all(world_size)
        times_us.append((time.perf_counter() - began) * 1e6)
    return gb_s(COPIES_AT_ONCE * (world_size - 1) * LINK_BYTES, times_us)[2:]


def _stream(gpu: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(torch.device("cuda", gpu))  # type: ignore[no-untyped-call]


def _wait_for_all(world_size: int) -> None:
    for gpu in range(world_size):
        torch.cuda.synchronize(gpu)


def of_one_gpu() -> Iterator[tuple[str, Measure]]:
    """Yield what is measured on one GPU alone: the quantity, and what takes its samples."""
    yield "hbm_copy", partial(_memory_gb_s, _copied, 2)
    yield "hbm_read", partial(_memory_gb_s, _summed, 1)
    yield "bfloat16", partial(_product_tflop_s, torch.bfloat16, SIDE)
    yield "float16", partial(_product_tflop_s, torch.float16, SIDE)
    yield "tensorfloat32", partial(_product_tflop_s, torch.float32, SIDE, "high")
    yield "float32", partial(_product_tflop_s, torch.float32, SIDE, "highest")
    yield "float64", partial(_product_tflop_s, torch.float64, FLOAT64_SIDE)
    yield "float8", _float8_tflop_s
    yield "launch", _launch_us
    yield "launch_and_wait", _launch_and_wait_us


def _memory_gb_s(
    prepared: Callable[[torch.Tensor], Callable[[], object]], passes: int
) -> list[float]:
    """Return rates in GB/s; `passes` is how often the memory of MEMORY_BYTES is read or written."""
    values = torch.empty(MEMORY_BYTES // 4, device="cuda").normal_()
    return gb_s(passes * MEMORY_BYTES, event_us(prepared(values), samples=20))


def _copied(values: torch.Tensor) -> Callable[[], object]:
    target = torch.empty_like(values)
    return lambda: target.copy_(values)


def _summed(values: torch.Tensor) -> Callable[[], object]:
    return values.sum


def _product_tflop_s(dtype: torch.dtype, side: int, precision: str = "highest") -> list[float]:
    """Return rates in TFLOP/s; `precision` is what float32 may lose: `high` allows TF32."""
    torch.set_float32_matmul_precision(precision)
    left, right = (torch.randn(side, side, device="cuda").to(dtype) for _ in range(2))
    out = torch.empty_like(left)
    return _tflop_s(lambda: torch.mm(left, right, out=out), side)


def _float8_tflop_s() -> list[float]:
    kind, one = torch.float8_e4m3fn, torch.ones((), device="cuda")
    left, right = (torch.randn(SIDE, SIDE, device="cuda").to(kind) for _ in range(2))
    return _tflop_s(
        lambda: torch._scaled_mm(
            left,
            right.t(),  # by columns, as the matrix units want it
            scale_a=one,
            scale_b=one,
            out_dtype=torch.bfloat16,
            use_fast_accum=True,
        ),
        SIDE,
    )


def _tflop_s(product: Callable[[], object], side: int) -> list[float]:
    return [2 * side**3 / us / 1e6 for us in event_us(product, samples=20)]


def _launch_us() -> list[float]:
    one = torch.zeros(1, device="cuda")
    times_us = []
    for _ in range(23):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(LAUNCHES):
            one.add_(1)
        torch.cuda.synchronize()
        times_us.append((time.perf_counter() - began) * 1e6 / LAUNCHES)
    return times_us[3:]


def _launch_and_wait_us() -> list[float]:
    one = torch.zeros(1, device="cuda")
    times_us = []
    for _ in range(320):
        began = time.perf_counter()
        one.add_(1)
        torch.cuda.synchronize()
        times_us.append((time.perf_counter() - began) * 1e6)
    return times_us[20:]
