"""Holds what a report says of a profile: timelines of the ranks, and how bytes move."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventKind(StrEnum):
    """Names what an event of a timeline did; `profiling/timeline.py` has the rule."""

    COMPUTE = "compute"
    COMMUNICATION = "communication"
    COPY = "copy"
    MEMSET = "memset"
    KERNEL = "kernel"


@dataclass(frozen=True, kw_only=True)
class TimelineEvent:
    """Holds one event; `start_us` is from the timeline's origin, `stream` a CUDA stream or a thread
    of a CPU."""

    name: str
    kind: EventKind
    start_us: float
    duration_us: float
    stream: int
    nbytes: int | None = None

    @property
    def end_us(self) -> float:
        """Return when it ended, in microseconds from the origin."""
        return self.start_us + self.duration_us


@dataclass(frozen=True, kw_only=True)
class RankTimeline:
    """Holds one rank's events by start, and sums over them.

    `span_us` is from the first start to the last end; in `idle_us` of it nothing ran, in
    `overlap_us` communication and compute at once, in `unknown_us` a kernel of unknown kind. Time
    that several events share counts once. `origin_ns` is Unix time by the host's clock.
    """

    rank: int
    device: str
    origin_ns: int
    events: tuple[TimelineEvent, ...]
    dropped_events: int
    graph_launches: int
    compute_us: float
    communication_us: float
    overlap_us: float
    unknown_us: float
    idle_us: float
    span_us: float


class Tag(StrEnum):
    """Names a way in which a kernel moves bytes between GPUs."""

    NCCL = "nccl"
    GLOO = "gloo"
    NVSHMEM = "nvshmem"
    COPY_ENGINE = "copy_engine"
    SM_LOAD_STORE = "sm_load_store"
    TMA = "tma"
    MULTIMEM = "multimem"
    SIGNAL_PADS = "signal_pads"
    SYMMETRIC_MEMORY = "symmetric_memory"
    CUDA_GRAPH = "cuda_graph"


class Evidence(StrEnum):
    """Names what shows a mechanism, strongest first."""

    TRACE = "trace"
    SASS = "sass"
    SOURCE = "source"


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """Holds a tag and one kind of evidence for it; `detail` says in a few words what was found."""

    tag: Tag
    evidence: Evidence
    detail: str
