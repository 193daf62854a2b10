"""Selects what a kernel is judged on: what the submitter asked for, else the default setting."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from leaderboard.kit.request_error import Faults, RequestError
from leaderboard.models import Hardware, Problem
from leaderboard.models.choices import FULL, SHARED, is_timed
from leaderboard.submissions.archives import shown
from leaderboard.submissions.kernel_needs import ranks_of
from leaderboard.submissions.queue import Target
from leaderboard.submissions.sources import Candidate
from leaderboard.submissions.trees import Tree

CPU_BACKENDS = ("pytorch", "cpp")
MOST_RANKS = 64


@dataclass(frozen=True, kw_only=True)
class Default:
    world_size: int
    size: str
    dtype: str


DEFAULTS = {
    "cpu": Default(world_size=2, size="tiny", dtype="float32"),
    "cuda": Default(world_size=4, size="standard", dtype="bfloat16"),
}


@dataclass(frozen=True, kw_only=True)
class TargetRequest:
    """Holds what a submitter asked for; None leaves it to the site."""

    device: str | None = None
    hardware: str | None = None
    world_size: int | None = None
    size: str | None = None
    dtype: str | None = None
    profile: str | None = None
    placement: str | None = None


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Holds the classes of hardware there are, the names of those that a host serves now, and the
    ranks on which all kernels of a submission are ranked, where one setting can hold them all."""

    known: Sequence[Hardware]
    served: Collection[str] = ()
    ranks_of_all: int = 0

    def for_all(self, problems: Iterable[Problem]) -> Machines:
        """Return the same for a submission at these problems: its kernels share a setting if a host
        has the ranks that the most demanding problem is ranked from."""
        least = max(map(fewest_ranked, problems), default=0)
        most = max((one.max_world_size for one in self.of("cuda")), default=0)
        return replace(self, ranks_of_all=least if least <= most else 0)

    def of(self, device: str) -> list[Hardware]:
        """Return the classes with a device: those that are served, if any is."""
        every = [one for one in self.known if one.device == device]
        return [one for one in every if one.slug in self.served] or every


def target_for(
    candidate: Candidate,
    problem: Problem,
    requested: TargetRequest,
    machines: Machines,
) -> Target:
    """Return the target of a candidate. Of classes of hardware that fit, those that are `served`
    by a host now go first. Raises RequestError where the problem, the backend or the `known`
    hardware cannot do it."""
    placement, known, served = requested.placement or FULL, machines.known, machines.served
    device = _device(candidate, requested, known)
    default = _default(candidate, problem, requested, machines, device)
    world_size = requested.world_size or default.world_size
    size, dtype = requested.size or default.size, requested.dtype or default.dtype
    faults = Faults()
    with faults.gathered():
        _check_device(candidate, requested, known, device)
    with faults.gathered():
        check_problem_has(problem, world_size, size, dtype)
    faults.raise_any()
    least = world_size if is_timed(placement) else 1
    fitting = {one.slug: one.max_world_size for one in _with_device(known, device, least)}
    asked = f"{world_size} ranks on {device}"
    if requested.hardware is None:
        fitting = {name: most for name, most in fitting.items() if name in served} or fitting
    return Target(
        hardware=_hardware(fitting, requested.hardware, candidate.tree, asked),
        device=device,
        world_size=world_size,
        size=size,
        dtype=dtype,
        profile=requested.profile or "hardened",
        placement=placement,
    )


def _check_device(
    candidate: Candidate, requested: TargetRequest, known: Sequence[Hardware], device: str
) -> None:
    """Raise RequestError for a device that does not run the backend, at what asked for it."""
    able = ["cpu", "cuda"] if candidate.backend in CPU_BACKENDS else ["cuda"]
    if requested.device or device in able:
        _check("device", device, able, f"{candidate.backend} kernels")
    else:
        slugs = sorted(one.slug for one in known if one.device in able)
        _check("hardware", requested.hardware, slugs, f"{candidate.backend} kernels")


def _device(candidate: Candidate, requested: TargetRequest, known: Sequence[Hardware]) -> str:
    """Return the device asked for, else that of the hardware asked for, else what the backend
    runs on as a rule."""
    of_hardware = next((one.device for one in known if one.slug == requested.hardware), None)
    usual = "cpu" if candidate.backend in CPU_BACKENDS else "cuda"
    return requested.device or of_hardware or usual


def _with_device(known: Sequence[Hardware], device: str, least: int) -> list[Hardware]:
    """Return the classes of hardware that have so many of a device."""
    return [one for one in known if one.device == device and one.max_world_size >= least]


def check_problem_has(problem: Problem, world_size: int, size: str, dtype: str) -> None:
    """Raise RequestError, with all that is wrong, unless the problem, as it now stands, can be
    judged like that."""
    faults = Faults()
    for name, value, allowed in (
        ("world_size", world_size, problem.payload["world_sizes"]),
        ("size", size, problem.payload["sizes"]),
        ("dtype", dtype, problem.payload["tolerances"]),
    ):
        with faults.gathered():
            _check(name, value, allowed, problem.slug)
    faults.raise_any()


def _default(
    candidate: Candidate,
    problem: Problem,
    requested: TargetRequest,
    machines: Machines,
    device: str,
) -> Default:
    """Return the rest: as the source or a published tree says, with its ranks where some host has
    them; else on GPUs as many as the smallest host has that can rank it, 4 at most."""
    default, tree = DEFAULTS[device], candidate.tree
    if device != "cuda":
        return default
    is_shared, allowed = requested.placement == SHARED, problem.payload["world_sizes"]
    every = [h for h in machines.known if h.device == device]
    hosts = [h for h in every if requested.hardware in (None, h.slug)]
    most = MOST_RANKS if is_shared else max((host.max_world_size for host in hosts), default=0)
    told = tree.world_size if tree else None
    ranks = ranks_of(candidate.source, candidate.backend) or told
    usual = default.world_size if is_shared else _usual_ranks(problem, requested, machines)
    return replace(
        default,
        world_size=ranks if ranks and ranks <= most and ranks in allowed else usual,
        dtype=(tree.dtype if tree else None) or default.dtype,
    )


def _usual_ranks(problem: Problem, requested: TargetRequest, machines: Machines) -> int:
    """Return as many ranks as the hardware asked for has, else as the smallest has that can rank
    the problem with the others of its submission; 4 at most, as settings shall be few."""
    least = max(fewest_ranked(problem), machines.ranks_of_all)
    named = [one.max_world_size for one in machines.known if one.slug == requested.hardware]
    able = [one.max_world_size for one in machines.of("cuda") if one.max_world_size >= least]
    most = min(*(named or able or [least]), DEFAULTS["cuda"].world_size)
    allowed = [n for n in problem.payload["world_sizes"] if n <= most]
    return max(allowed, default=least)


def fewest_ranked(problem: Problem) -> int:
    """Return the fewest ranks on which a result for the problem counts."""
    sizes: list[int] = problem.payload["world_sizes"]
    return min((n for n in sizes if n >= problem.ranked_from), default=problem.ranked_from)


def _hardware(fitting: Mapping[str, int], slug: str | None, tree: Tree | None, asked: str) -> str:
    """Return of the `fitting` classes of hardware that asked for, else a published tree's, else the
    smallest. `asked` says in words what they fit."""
    if slug is not None:
        _check("hardware", slug, sorted(fitting), asked)
        return slug
    if not fitting:
        raise RequestError(
            "no_hardware",
            f"No host of this site has run {asked} yet.",
            "See /api/v1/status for the hardware there is.",
            fields={"device": f"no host with {asked}"},
        )
    if tree and tree.hardware and tree.hardware in fitting:
        return tree.hardware
    return min(fitting, key=lambda name: (fitting[name], name))


def _check(name: str, value: object, allowed: Collection[object], subject: str) -> None:
    if value not in allowed:
        choices = ", ".join(str(item) for item in allowed) or "none yet"
        raise RequestError(
            f"bad_{name}",
            f"{name} {shown(str(value))} does not go with {subject}.",
            f"Choose {name} from: {choices}.",
            fields={name: f"one of: {choices}"},
        )
