"""Define the vocabulary that problem files are written in. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Let an output x pass where |x - ref| <= atol * rms(ref) + rtol * |ref|.

    With `absolute`, atol stands for itself, as in torch.allclose. Where `rms` is set, the root mean
    square of an output's errors, each in units of what its element is allowed, may be no larger.
    So many `outliers` may be off by more (see `problems.comparison`).
    """

    atol: float
    rtol: float
    absolute: bool = False
    rms: float | None = None
    outliers: int = 0


NO_LIMITS: Mapping[str, float] = MappingProxyType({})
EXACT = Tolerance(atol=0.0, rtol=0.0)
UPSTREAM_TOLERANCE = Tolerance(atol=1e-2, rtol=1e-2, absolute=True)
# Tails of rounding grow with an output's elements. Where few of them depend on a wire, more would
# let it have 8 bits.
OUTLIERS = {"bfloat16": 8}
OUTLIER_LIMIT = 2.0  # tolerances
ELEMENTS_AN_OUTLIER = 1_000_000


def tolerances(
    *, float32: float, bfloat16: float, float16: float, rms: Mapping[str, float] = NO_LIMITS
) -> Mapping[str, Tolerance]:
    """Return a tolerance per run dtype from one number each, for both of its parts; `rms` limits
    the root mean square in some dtypes."""
    limits = {"float32": float32, "bfloat16": bfloat16, "float16": float16}
    return {
        dtype: Tolerance(atol=limit, rtol=limit, rms=rms.get(dtype))
        for dtype, limit in limits.items()
    }


DEFAULT_TOLERANCES = tolerances(float32=1e-4, bfloat16=3e-2, float16=4e-3)


@dataclass(frozen=True, kw_only=True)
class Size:
    """Hold PKB's two size arguments."""

    m: int
    n: int


EXACT_TOLERANCES = dict.fromkeys(DEFAULT_TOLERANCES, EXACT)


def sizes(
    *,
    tiny: tuple[int, int] = (64, 32),
    large: tuple[int, int] = (8192, 8192),
    more: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> Mapping[str, Size]:
    """Name sizes: (m, n) for a CPU, PKB's 1024 x 1024, (m, n) that is bound by bandwidth, and
    `more` of them where results were published over a range."""
    named = {"tiny": tiny, "standard": (1024, 1024), "large": large, **more}
    return {name: Size(m=m, n=n) for name, (m, n) in named.items()}


DEFAULT_SIZES = sizes()


@dataclass(frozen=True, kw_only=True)
class GroupRef:
    """Stand for a process group in `make_inputs`; the runner passes the real one."""

    axis: str


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """List what a host must offer besides ranks. `memory_gib` is per GPU, at size `standard`, for
    judging in bfloat16: inputs, outputs, the reference's working memory and the oracle's."""

    peer_access: bool = True
    multicast: bool = False
    memory_gib: int = 8


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Tell a reader, the site and the evaluator all they need before anything runs.

    `summary` is one line, `statement` is what a model is asked. `mesh` names the axes of the
    process mesh, whose lengths are entries of `dims` (the axis `world` spans every rank). `mutates`
    names the arguments that a call changes in place: they are compared after the call as well.
    Results on fewer ranks than `ranked_from` count nowhere, as `ranked_from_reason` explains.
    `output_tolerances` has by name the outputs whose tolerance is tighter than `tolerances`.
    `wire_bits` is set where values may travel in as few bits, as the statement says and `cost`
    counts. `topology` says who exchanges data with whom. `latency_bound_reason` is set where no
    size makes moving data outweigh ten launches. With `settles_upstream`, `settle` holds under
    `upstream` too: at ties PKB's own check tells how a reference divides. Hidden shapes are
    multiples of `m_step` and `n_step`; None keeps that size as published.
    """

    number: int
    title: str
    source: str
    domain: str
    summary: str
    statement: str
    outputs: tuple[str, ...]
    mutates: tuple[str, ...] = ()
    mesh: tuple[str, ...] = ("world",)
    topology: str = "every rank with every other, all on one node"
    requirements: Requirements = Requirements()
    also: tuple[str, ...] = ()
    m_step: int | None = 1
    n_step: int | None = 1
    sizes: Mapping[str, Size] = field(default_factory=lambda: DEFAULT_SIZES)
    tolerances: Mapping[str, Tolerance] = field(default_factory=lambda: DEFAULT_TOLERANCES)
    output_tolerances: Mapping[str, Mapping[str, Tolerance]] = field(default_factory=dict)
    tolerance_reason: str = "default for the dtype"
    wire_bits: int | None = None
    world_sizes: tuple[int, ...] = (2, 4, 8)
    ranked_from: int = 2
    ranked_from_reason: str | None = None
    unscored_reason: str | None = None
    latency_bound_reason: str | None = None
    settles_upstream: bool = False
    known_issues: tuple[str, ...] = ()

    @property
    def scored(self) -> bool:
        return self.unscored_reason is None

    def tolerance(self, profile: str, dtype: str, output: str = "") -> Tolerance:
        """Return the judge's tolerance: PKB's own check under `upstream`, ours otherwise. An output
        of `output_tolerances` has its own, and so has each of its items."""
        if profile == "upstream":
            return UPSTREAM_TOLERANCE
        own = self.output_tolerances.get(output.partition("[")[0], self.tolerances)
        return replace(own[dtype], outliers=OUTLIERS.get(dtype, 0))

    def settles(self, profile: str) -> bool:
        """Return whether `settle` holds, if the problem has it."""
        return profile != "upstream" or self.settles_upstream


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Count the least work of the busiest rank: bytes that it sends or receives, whichever are
    more, operations, and bytes moved through memory."""

    wire_bytes: float
    flops: float
    hbm_bytes: float
    exchanges: int = 1

    def times(self, share: float) -> Cost:
        """Return so large a share of this work, in as many exchanges."""
        return replace(
            self,
            wire_bytes=share * self.wire_bytes,
            flops=share * self.flops,
            hbm_bytes=share * self.hbm_bytes,
        )


class Dims(SimpleNamespace):
    """Name the sizes of one instance of a problem; every value is an integer."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> int: ...
