"""Reads what ran on one rank during a few calls, and how far its communication hid behind
computing.

The events are what a rank says of itself (`rank/profiler.py`): untrusted bytes, shown and never
scored. Names decide an event's kind, because a profiler tells no more:

* `communication`: NCCL's and NVSHMEM's kernels, those of torch's symmetric memory, copies between
  two GPUs, and on a CPU the collectives of torch.distributed;
* `compute`: kernels of torch, its compiler and NVIDIA's libraries; on a CPU torch's operators;
* `copy` and `memset`: within one GPU, or between it and its host;
* `kernel`: any other. A kernel that a submission brought along may compute, move bytes between
  GPUs, or do both at once, and nothing outside it can tell. Its time counts as busy and as unknown,
  so that `compute_us`, `communication_us` and `overlap_us` are lower bounds where `unknown_us` > 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from evaluator.messages.profile import EventKind, RankTimeline, TimelineEvent
from evaluator.messages.text import plain_text

MAX_BYTES = 2 << 20
MAX_EVENTS = 2000
MAX_NAME_CHARS = 200
MAX_US = 600e6
MAX_SKEW_US = 1e6
DEVICES = ("cuda", "cpu")
RECORDED_KINDS = ("kernel", "memcpy", "memset", "op")
_MAX_COUNT = 2**53
_MAX_STREAM = 2**31


# torch's own kernels on symmetric memory, by the name right before their arguments.
SYMMETRIC_MEMORY = re.compile(
    r"\b(?:one_shot_all_reduce|two_shot_all_reduce|oneShotAllReduce|twoShotAllReduce"
    r"|multimem_all_reduce|multimem_one_shot(?:_all)?_reduce|multimem_all_gather"
    r"|barrier|put_signal|wait_signal)_?[kK]ernel(?:_inplace)?(?=[<(]|$)"
)
_COMMUNICATION = re.compile(r"nccl|nvshmem|c10d::")
_COMPUTE = re.compile(
    r"(?:at|at_cuda_detail|c10|cub|thrust|cutlass|pytorch_flash)::"
    r"|cublas|cudnn|cutlass_|nvjet_|sm\d{2,3}_xmma_|(?:ampere|turing|volta|maxwell)_"
    r"|gemv2[NT]_|gemvNSP_|gemmk1_|gemmSN_|internal::gemvx|fmha_|triton_[a-z]{2,8}_fused_"
)
_CPU_COLLECTIVES = ("gloo:", "c10d::", "_c10d_functional::", "mpi:")
_CPU_COPIES = ("aten::copy_", "aten::clone", "aten::contiguous", "aten::to", "aten::_to_copy")


def read_timeline(
    raw: bytes, rank: int, *, unknown: EventKind = EventKind.KERNEL
) -> RankTimeline | None:
    """Read the timeline in what a rank recorded; None where it recorded none or wrote anything
    else.

    `unknown` is the kind of kernels that no name explains: `compute` where the source has no way to
    another GPU's memory (`mechanism.reaches_peers`), so that they cannot communicate.
    """
    message = _parsed(raw)
    rows, device = message.get("events"), message.get("device")
    origin_ns = _whole(message.get("origin_ns"), 2**63 - 1)
    if not isinstance(rows, list) or device not in DEVICES or origin_ns is None:
        return None
    read = [event for row in rows[:MAX_EVENTS] if (event := _event(row, unknown)) is not None]
    events = tuple(sorted(read, key=lambda event: event.start_us))
    dropped = len(rows) - len(events) + (_whole(message.get("dropped"), _MAX_COUNT) or 0)
    communication = _union(events, EventKind.COMMUNICATION)
    compute = _union(events, EventKind.COMPUTE)
    busy_us = _length(_union(events, *EventKind))
    span_us = max((e.end_us for e in events), default=0.0) - (events[0].start_us if events else 0.0)
    either_us = _length(_union(events, EventKind.COMMUNICATION, EventKind.COMPUTE))
    return RankTimeline(
        rank=rank,
        device=str(device),
        origin_ns=origin_ns,
        events=events,
        dropped_events=dropped,
        graph_launches=_whole(message.get("graph_launches"), _MAX_COUNT) or 0,
        compute_us=round(_length(compute), 3),
        communication_us=round(_length(communication), 3),
        overlap_us=_at_least_0(_length(communication) + _length(compute) - either_us),
        unknown_us=round(_length(_union(events, EventKind.KERNEL)), 3),
        idle_us=_at_least_0(span_us - busy_us),
        span_us=round(span_us, 3),
    )


def align(timelines: Sequence[RankTimeline]) -> tuple[RankTimeline, ...]:
    """Put timelines on one clock, from the earliest rank's origin on; unchanged if clocks disagree.

    Ranks of one host share its clock. One that says to have begun a second apart from another was
    not profiled together with it, or lies.
    """
    origins = [timeline.origin_ns for timeline in timelines]
    if not origins or max(origins) - min(origins) > MAX_SKEW_US * 1e3:
        return tuple(timelines)
    return tuple(_since(timeline, min(origins)) for timeline in timelines)


def _since(timeline: RankTimeline, origin_ns: int) -> RankTimeline:
    later_us = (timeline.origin_ns - origin_ns) / 1e3
    events = tuple(
        replace(event, start_us=round(event.start_us + later_us, 3)) for event in timeline.events
    )
    return replace(timeline, origin_ns=origin_ns, events=events)


def kind_of(name: str, recorded_kind: str, *, is_peer: bool, unknown: EventKind) -> EventKind:
    """Return the kind of an event, by the rule at the head of this module."""
    match recorded_kind:
        case "memset":
            return EventKind.MEMSET
        case "memcpy":
            return EventKind.COMMUNICATION if is_peer else EventKind.COPY
        case "op":
            if name.startswith(_CPU_COLLECTIVES):
                return EventKind.COMMUNICATION
            if name in _CPU_COPIES:
                return EventKind.COPY
            return EventKind.COMPUTE if name.startswith("aten::") else unknown
    function = name.removeprefix("void ")
    if _COMMUNICATION.match(function) or SYMMETRIC_MEMORY.search(function):
        return EventKind.COMMUNICATION
    return EventKind.COMPUTE if _COMPUTE.match(function) else unknown


def _parsed(raw: bytes) -> dict[str, object]:
    """Return the object in `raw`, empty where there is none."""
    if len(raw) > MAX_BYTES:
        return {}
    try:
        message = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _event(row: object, unknown: EventKind) -> TimelineEvent | None:
    """Read `[name, recorded kind, start_us, duration_us, stream, bytes or null, is_peer]`."""
    if not isinstance(row, list) or len(row) != 7:
        return None
    name, recorded_kind, start, duration, stream_id, nbytes, is_peer = row
    start_us, duration_us = _time_us(start), _time_us(duration)
    stream = _whole(stream_id, _MAX_STREAM)
    if not isinstance(name, str) or recorded_kind not in RECORDED_KINDS:
        return None
    if start_us is None or duration_us is None or stream is None:
        return None
    text = plain_text(name, MAX_NAME_CHARS).replace("\n", " ").replace("\t", " ")
    return TimelineEvent(
        name=text,
        kind=kind_of(text, recorded_kind, is_peer=is_peer is True, unknown=unknown),
        start_us=start_us,
        duration_us=duration_us,
        stream=stream,
        nbytes=_whole(nbytes, _MAX_COUNT),
    )


def _time_us(value: object) -> float | None:
    """Return a time that a call can take, to the nanosecond. NaN is none, and a bool is no
    number."""
    if type(value) not in (int, float) or not 0 <= value <= MAX_US:  # type: ignore[operator]
        return None
    return round(float(value), 3)  # type: ignore[arg-type]


def _whole(value: object, limit: int) -> int | None:
    if type(value) is not int or not 0 <= value <= limit:
        return None
    return value


def _union(events: Iterable[TimelineEvent], *kinds: EventKind) -> list[tuple[float, float]]:
    """Return the disjoint intervals in which one of `kinds` ran; `events` come in order of their
    start."""
    merged: list[tuple[float, float]] = []
    for event in events:
        if event.kind not in kinds:
            continue
        if merged and event.start_us <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], event.end_us))
        else:
            merged.append((event.start_us, event.end_us))
    return merged


def _length(intervals: Iterable[tuple[float, float]]) -> float:
    return sum((end - start for start, end in intervals), 0.0)


def _at_least_0(difference_us: float) -> float:
    """Return a difference of sums, which rounding may have put below zero."""
    return max(0.0, round(difference_us, 3))
