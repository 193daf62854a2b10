"""Defines the message out of the evaluator. A report that makes no sense cannot be built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from evaluator.messages.job import Placement, Setting
from evaluator.messages.profile import Mechanism, RankTimeline
from evaluator.messages.roofline_bounds import RooflineBounds

JUDGE_VERSION = "10"
MAX_REPORT_BYTES = 8 << 20  # as JSON; a site takes no longer one
# As problems.spec has them: in so large an output a few elements may be off by so many tolerances.
ELEMENTS_AN_OUTLIER, OUTLIER_LIMIT = 1_000_000, 2.0
UNCLEAN_HOST = "unclean_host"  # the flag of a run whose processes could not be ended


class Verdict(StrEnum):
    """Names what a run came to."""

    OK = "ok"
    BUILD_ERROR = "build_error"
    IMPORT_ERROR = "import_error"
    MISSING_ENTRY_POINT = "missing_entry_point"
    RUNTIME_ERROR = "runtime_error"
    SHAPE_MISMATCH = "shape_mismatch"
    DTYPE_MISMATCH = "dtype_mismatch"
    NONFINITE_OUTPUT = "nonfinite_output"
    OUTPUT_MISMATCH = "output_mismatch"
    LATE_OUTPUT = "late_output"
    INPUT_CONTRACT_BROKEN = "input_contract_broken"
    HOST_UNSUPPORTED = "host_unsupported"
    TIMEOUT = "timeout"
    OOM = "oom"
    RESOURCE_LIMIT = "resource_limit"
    PROTOCOL_VIOLATION = "protocol_violation"
    FASTER_THAN_LIGHT = "faster_than_light"
    INFRA_ERROR = "infra_error"
    CANCELLED = "cancelled"

    @property
    def counts(self) -> bool:
        """Return whether this verdict says anything about the kernel (and so about the model)."""
        return self not in (Verdict.HOST_UNSUPPORTED, Verdict.INFRA_ERROR, Verdict.CANCELLED)


class Phase(StrEnum):
    """Names where a run is, or where it ended."""

    BUILD = "build"
    VERIFY = "verify"
    TIMED = "timed"
    PROFILE = "profile"
    TEARDOWN = "teardown"


class Isolation(StrEnum):
    """Names how far a submission is kept from the host; measured at start, weakest first."""

    NONE = "none"
    BWRAP = "bwrap"
    BWRAP_CGROUP_SECCOMP = "bwrap+cgroup+seccomp"
    VM = "vm"

    def at_least(self, other: Isolation) -> bool:
        """Return whether this level is the other or a stronger one."""
        order = list(Isolation)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, kw_only=True)
class OutputCheck:
    """Holds one output of one rank in a trial; `max_error` in units of the tolerance (1.0: the
    limit, but for outliers). `rms_error` is the root mean square of all errors in these units,
    `rms_limit` what it may be; both None in reports made before 0.2.0, the limit also where there
    is none."""

    rank: int
    output: str
    elements: int
    mismatched: int
    max_error: float | None
    verdict: Verdict = Verdict.OK
    rms_error: float | None = None
    rms_limit: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.mismatched <= self.elements:
            raise ValueError("mismatched must lie between 0 and elements")
        if self.verdict is not Verdict.OK:
            return
        if self.mismatched:
            raise ValueError("an output with mismatches cannot be ok")
        if (self.max_error or 0.0) > (OUTLIER_LIMIT if self.elements >= ELEMENTS_AN_OUTLIER else 1):
            raise ValueError("an output beyond its tolerance cannot be ok")
        if self.rms_limit and (self.rms_error or 0.0) / self.rms_limit > 1.0:
            raise ValueError("an output beyond its root mean square limit cannot be ok")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Holds one seeded set of inputs in the correctness check; `m` and `n` are the problem's
    sizes."""

    trial: int
    m: int
    n: int
    note: str
    checks: tuple[OutputCheck, ...]

    @property
    def passed(self) -> bool:
        """Return whether every output of every rank was right."""
        return all(check.verdict is Verdict.OK for check in self.checks)


@dataclass(frozen=True, kw_only=True)
class ThreeTimes:
    """Hold the medians of one side, in microseconds.

    `answer_us` is the score: one call whose launches are queued before its inputs can be read.
    `call_us` is one call that is launched once they can. `series_us` is a call among several back
    to back behind one gate. The last two are None where they were not measured.
    """

    answer_us: float
    call_us: float | None = None
    series_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Hold the times of calls, in microseconds, by the judge's clock.

    `kernel_us` and `baseline_us` are medians of `kernel_bursts_us` and `baseline_bursts_us`, one
    entry a call; `speedup` is baseline over kernel with its 95 % interval. `empty_us`, what a call
    without `solution` takes in a process of ours, is taken off each, so nothing that replaces the
    runner gains more. Two times that differ by less than `resolution_us` are not distinguishable.
    `before_us` and `after_us` are the reference's medians before the submission's processes
    existed and after they were gone; after is None where an earlier run measured the reference.
    `ahead` is the share of the kernel's calls that were wholly queued when their inputs opened.

    Up to judge 9 an entry is a batch ("burst") of `burst_calls` calls, `*_single_us` are batches of
    one call, and `rank_us`, `rank_last` and `*_events_us` are what ranks said of themselves.
    """

    kernel_us: float
    baseline_us: float
    speedup: float
    speedup_low: float
    speedup_high: float
    empty_us: float
    warmup_calls: int
    timed_calls: int
    kernel_bursts_us: tuple[float, ...]
    baseline_bursts_us: tuple[float, ...]
    burst_calls: int = 1
    resolution_us: float | None = None
    kernel: ThreeTimes | None = None
    baseline: ThreeTimes | None = None
    before_us: float | None = None
    after_us: float | None = None
    ahead: float | None = None
    kernel_single_us: float | None = None
    baseline_single_us: float | None = None
    rank_us: tuple[float, ...] = ()
    rank_last: tuple[int, ...] = ()
    kernel_events_us: float | None = None
    baseline_events_us: float | None = None

    def __post_init__(self) -> None:
        if not min(self.kernel_us, self.baseline_us) > 0:
            raise ValueError("times must be positive")
        if not 0 < self.speedup_low <= self.speedup <= self.speedup_high:
            raise ValueError("the speedup must lie inside its interval")
        if not self.kernel_bursts_us or not self.baseline_bursts_us:
            raise ValueError("a timing needs its raw samples")

    @property
    def distinguishable(self) -> bool:
        """Return whether the interval excludes 1.0x."""
        return not self.speedup_low <= 1.0 <= self.speedup_high


@dataclass(frozen=True, kw_only=True)
class RankLog:
    """Holds what a rank printed, cut to its head and tail. Attacker-controlled text."""

    rank: int
    text: str
    dropped_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Pauses:
    """Holds how often a submission stood still for the judge, how long in all, how long the judge
    waited until it did, and the processor time that it used meanwhile, in seconds."""

    spans: int
    paused_s: float
    waited_s: float
    worked_s: float


@dataclass(frozen=True, kw_only=True)
class GpuState:
    """Describes a GPU at one moment, as its driver does."""

    name: str
    sm_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    throttle_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Describes where the run happened: library versions, processor, accelerator, host settings."""

    hardware: str
    host: str
    versions: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Holds everything one evaluation found. Sizes of texts are capped by the evaluator.

    `flag_lines` are lines of the source that flags come from, numbered from 1. `panel_s` is how
    many seconds of the phases the judge waited for the oracle's ranks, by command.
    `software_version` is the release that judged; None in reports made before 0.1.0. `setting` is
    what the job asked for, `pauses` those of the submission; both None in reports made before
    0.2.0. Raises ValueError where parts contradict each other.
    """

    verdict: Verdict
    message: str
    problem: str
    problem_digest: str
    kernel_digest: str
    isolation: Isolation
    environment: Environment
    judge_version: str = JUDGE_VERSION
    phase: Phase | None = None
    cause: str | None = None
    evidence: str | None = None
    ranks: tuple[int, ...] = ()
    flags: tuple[str, ...] = ()
    flag_lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()
    timing: Timing | None = None
    phase_s: Mapping[str, float] = field(default_factory=dict)
    panel_s: Mapping[str, float] = field(default_factory=dict)
    pauses: Pauses | None = None
    gpus: tuple[GpuState, ...] = ()
    floors: RooflineBounds | None = None
    timelines: tuple[RankTimeline, ...] = ()
    mechanisms: tuple[Mechanism, ...] = ()
    logs: tuple[RankLog, ...] = ()
    software_version: str | None = None
    setting: Setting | None = None

    def __post_init__(self) -> None:
        if self.verdict is Verdict.OK:
            is_timed = self.timing is not None
            if not self.trials or is_timed is (self.placement is Placement.SHARED):
                raise ValueError(
                    "an ok report needs its trials and, not of shared ones, its timing"
                )
            if not all(trial.passed for trial in self.trials):
                raise ValueError("an ok report cannot hold a failed trial")
        elif self.timing is not None and self.verdict is not Verdict.FASTER_THAN_LIGHT:
            raise ValueError(f"a {self.verdict} report cannot carry a timing")
        if not self.message:
            raise ValueError("a report says why in one sentence")

    @property
    def placement(self) -> Placement:
        """Return where the ranks were. If shared, `ok` means checked: right, and never timed."""
        return self.setting.placement if self.setting else Placement.FULL

    @property
    def utilisation(self) -> float | None:
        """Return the bound over the kernel's time, where both are known."""
        if self.floors is None or self.timing is None:
            return None
        return self.floors.utilisation(self.timing.kernel_us)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Says where a running evaluation is: `done` of `total` steps of a phase."""

    phase: Phase
    done: int = 0
    total: int = 0
