"""Defines the message into the evaluator: one kernel, one problem, how to judge it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from enum import StrEnum

_SECRET = re.compile(r"[0-9a-f]{32}")
LEAST_RANKS = 2  # one would have nobody to exchange anything with


class Backend(StrEnum):
    """Names the language a kernel is written in."""

    PYTORCH = "pytorch"
    CPP = "cpp"
    CUDA = "cuda"
    TRITON = "triton"
    PARALLELKITTENS = "parallelkittens"


class Profile(StrEnum):
    """Names where inputs come from: PKB's generator, or random inputs that no constant can
    satisfy."""

    UPSTREAM = "upstream"
    HARDENED = "hardened"


class Device(StrEnum):
    """Names what a run is judged on."""

    CPU = "cpu"
    CUDA = "cuda"


class Placement(StrEnum):
    """Names where ranks are: one GPU each, or all on the first, where nothing is timed."""

    FULL = "full"
    SHARED = "shared"


class Dtype(StrEnum):
    """Names the type of a run's floating-point inputs."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element."""
        return 4 if self is Dtype.FLOAT32 else 2


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Holds what a submission may use. Passing one of them is the submitter's verdict, never an
    error."""

    build_s: float = 300.0
    verify_s: float = 120.0
    timed_s: float = 180.0
    memory_bytes: int = 8 << 30
    processes: int = 256
    scratch_bytes: int = 1 << 30
    log_bytes: int = 64 << 10

    @property
    def phases_s(self) -> float:
        """Return the seconds that all phases of a run may take: both sides build, the submission is
        verified before it is timed and after, and the reference is timed before and up to three
        times after it."""
        return 2 * self.build_s + 2 * self.verify_s + 5 * self.timed_s


def limits_of(device: Device) -> Limits:
    """Return the limits of a device. A host with GPUs gives more: CUDA and its compilers take
    gigabytes a rank."""
    if device is Device.CPU:
        return Limits()
    return Limits(memory_bytes=96 << 30, processes=4096, scratch_bytes=8 << 30)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Says how a kernel is judged, which its report repeats, so that two are not mixed up. What
    was judged before 0.2.0 had the placement `full`."""

    world_size: int
    size: str
    dtype: Dtype
    profile: Profile
    device: Device
    placement: Placement = Placement.FULL


@dataclass(frozen=True, kw_only=True)
class Job:
    """Asks for one evaluation. `problem` is a slug such as `allreduce`; `source` the kernel's text.
    `secret`, 16 bytes as hexadecimal, makes the inputs equal to those of other jobs that have it;
    without one the judge draws its own.

    Raises ValueError where a number is out of its range, or the secret is none.
    """

    problem: str
    source: str
    backend: Backend = Backend.PYTORCH
    world_size: int = 2
    size: str = "tiny"
    dtype: Dtype = Dtype.FLOAT32
    profile: Profile = Profile.HARDENED
    device: Device = Device.CPU
    placement: Placement = Placement.FULL
    trials: int = 6
    limits: Limits = field(default_factory=Limits)
    secret: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.problem:
            raise ValueError("a job needs a problem")
        if not LEAST_RANKS <= self.world_size <= 64:
            raise ValueError(f"world_size must be 2 to 64, not {self.world_size}")
        if not 1 <= self.trials <= 100:
            raise ValueError(f"trials must be 1 to 100, not {self.trials}")
        if self.secret is not None and not _SECRET.fullmatch(self.secret):
            raise ValueError("a job's secret has 32 hexadecimal digits")

    @property
    def setting(self) -> Setting:
        """Return how the kernel is to be judged."""
        return Setting(
            world_size=self.world_size,
            size=self.size,
            dtype=self.dtype,
            profile=self.profile,
            device=self.device,
            placement=self.placement,
        )

    @property
    def kernel_digest(self) -> str:
        """Return the SHA-256 of the source: a kernel's identity."""
        return source_digest(self.source)


def source_digest(source: str) -> str:
    """Return the SHA-256 of a source, in hexadecimal."""
    return hashlib.sha256(source.encode()).hexdigest()
