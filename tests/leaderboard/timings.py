"""Times as judges report them: of single calls since judge 10, of batches before."""

from __future__ import annotations

from evaluator.messages.report import ThreeTimes, Timing

WOBBLE = (1.0, 1.02, 0.99, 1.0, 1.05, 0.98, 1.0, 1.03)


def make_timing(speedup: float, baseline: float = 100.0) -> Timing:
    """Of single calls, as since judge 10; `baseline` in microseconds."""
    kernel = baseline / speedup
    return Timing(
        kernel_us=kernel,
        baseline_us=baseline,
        speedup=speedup,
        speedup_low=speedup * 0.96,
        speedup_high=speedup * 1.05,
        empty_us=6.5,
        warmup_calls=16,
        timed_calls=8,
        kernel_bursts_us=tuple(kernel * w for w in WOBBLE),
        baseline_bursts_us=tuple(baseline * w for w in reversed(WOBBLE)),
        resolution_us=0.25,
        kernel=ThreeTimes(answer_us=kernel, call_us=kernel * 1.5, series_us=kernel * 0.8),
        baseline=ThreeTimes(answer_us=baseline, call_us=baseline * 1.4, series_us=baseline * 0.9),
        before_us=baseline * 0.99,
        after_us=baseline * 1.01,
        ahead=0.875,
    )


def make_batch_timing(speedup: float, world_size: int = 2) -> Timing:
    """Of batches, as judges up to 9 had it."""
    kernel, baseline = 100.0 / speedup, 100.0
    return Timing(
        kernel_us=kernel,
        baseline_us=baseline,
        speedup=speedup,
        speedup_low=speedup * 0.96,
        speedup_high=speedup * 1.05,
        kernel_single_us=kernel * 1.2,
        baseline_single_us=baseline * 1.1,
        empty_us=20.0,
        burst_calls=16,
        warmup_calls=500,
        timed_calls=128,
        kernel_bursts_us=tuple(kernel * w for w in WOBBLE),
        baseline_bursts_us=tuple(baseline * w for w in reversed(WOBBLE)),
        rank_us=tuple(kernel * (1 + 0.01 * rank) for rank in range(world_size)),
        rank_last=(0,) * (world_size - 1) + (len(WOBBLE),),
    )
