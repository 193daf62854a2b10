"""A report as a host with GPUs makes it: floors, timelines, mechanisms, clocks."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from evaluator.messages.profile import (
    EventKind,
    Evidence,
    Mechanism,
    RankTimeline,
    Tag,
    TimelineEvent,
)
from evaluator.messages.report import JUDGE_VERSION, Environment, GpuState, Report, Timing
from evaluator.messages.roofline_bounds import RooflineBounds
from leaderboard.models import Run
from leaderboard.models.choices import times_calls
from tests.leaderboard import factory, timings

GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_execute"
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
OWN = "void two_shot_reduce<8>(__nv_bfloat16 const* const*, __nv_bfloat16*, int)"


def make_gpu_run(model: str = "Model One", source: str = factory.SOURCE, **changes: Any) -> Run:
    """Judged on GPUs; the first step of an agentic submission."""
    submission = factory.make_submission(model, "agentic")
    kernel = factory.make_kernel(submission, factory.make_problem(), source=source)
    run = factory.make_run(kernel, world_size=4, device="cuda", dtype="bfloat16", size="standard")
    return factory.finish(run, make_gpu_report(run, **changes))


def make_gpu_report(run: Run, speedup: float = 1.42, **changes: Any) -> Report:
    """Of `run.world_size` ranks; the last one is the slowest, as judges up to 9 tell."""
    ranks = range(run.world_size)
    timing = timings.make_timing(speedup)
    if not times_calls(changes.get("judge_version", JUDGE_VERSION)):
        timing = make_batch_timing(speedup, ranks)
    made: dict[str, Any] = {
        "timing": timing,
        "floors": RooflineBounds(wire_us=33.6, hbm_us=21.3, flops_us=12.25, latency_us=1.8),
        "timelines": tuple(make_timeline(rank) for rank in ranks),
        "mechanisms": (
            Mechanism(tag=Tag.NCCL, evidence=Evidence.TRACE, detail=f"8 x {REDUCE}"[:80]),
            Mechanism(tag=Tag.NCCL, evidence=Evidence.SOURCE, detail="line 6: dist.all_reduce("),
            Mechanism(tag=Tag.SIGNAL_PADS, evidence=Evidence.SASS, detail="12 system-wide atomics"),
        ),
        "gpus": tuple(
            GpuState(
                name="NVIDIA H200",
                sm_mhz=1980 - 45 * rank,
                memory_mhz=3201,
                temperature_c=41 + rank,
                power_w=233.5 + 11 * rank,
                throttle_reasons=("sw_power_cap",) if rank == run.world_size - 1 else (),
            )
            for rank in ranks
        ),
        "environment": Environment(
            hardware=f"{run.world_size} x NVIDIA H200",
            host="gpu-host-1",
            versions={"torch": "2.11.0+cu130", "nccl": "2.28.9", "driver": "580.159.04"},
            settings={"NCCL_NVLS_ENABLE": "0", "multicast": "off"},
        ),
        "flags": ("uses_nccl", "static:side-stream"),
    }
    return factory.make_report(run, speedup=speedup, **{**made, **changes})


def make_batch_timing(speedup: float, ranks: range) -> Timing:
    timing = timings.make_batch_timing(speedup)
    return replace(
        timing,
        rank_us=tuple(timing.kernel_us * (1 + 0.01 * rank) for rank in ranks),
        rank_last=tuple(1 + rank for rank in ranks),
        kernel_events_us=timing.kernel_us * 1.04,
        baseline_events_us=timing.baseline_us * 1.07,
    )


def make_timeline(rank: int, calls: int = 24, seed: int = 7) -> RankTimeline:
    """GEMMs on one stream, all-reduces that begin halfway through them on another."""
    dice = random.Random(seed + rank)
    events, now = [], 3.0 * rank
    for _ in range(calls):
        gemm_us, reduce_us = dice.uniform(18, 24), dice.uniform(14, 20)
        events.append(event(GEMM, EventKind.COMPUTE, now, gemm_us))
        events.append(event(REDUCE, EventKind.COMMUNICATION, now + gemm_us / 2, reduce_us))
        events.append(event(OWN, EventKind.KERNEL, now + gemm_us + 1, 6.5))
        events.append(event("Memset (Device)", EventKind.MEMSET, now + gemm_us + 8, 0.9))
        events.append(event("Memcpy DtoD", EventKind.COPY, now + gemm_us + 9.5, 2.2))
        now += gemm_us + 14
    compute_us = sum(e.duration_us for e in events if e.kind is EventKind.COMPUTE)
    communication_us = sum(e.duration_us for e in events if e.kind is EventKind.COMMUNICATION)
    return RankTimeline(
        rank=rank,
        device="cuda",
        origin_ns=1_790_000_000_000_000_000,
        events=tuple(events),
        dropped_events=0,
        graph_launches=0,
        compute_us=round(compute_us, 3),
        communication_us=round(communication_us, 3),
        overlap_us=round(communication_us * 0.61, 3),
        unknown_us=round(6.5 * calls, 3),
        idle_us=round(3.1 * calls, 3),
        span_us=round(now - 3.0 * rank, 3),
    )


def event(name: str, kind: EventKind, start_us: float, duration_us: float) -> TimelineEvent:
    return TimelineEvent(
        name=name,
        kind=kind,
        start_us=round(start_us, 3),
        duration_us=round(duration_us, 3),
        stream=13 if kind is EventKind.COMMUNICATION else 7,
        nbytes=1 << 20 if kind is EventKind.COPY else None,
    )
