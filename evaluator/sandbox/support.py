"""Finds what a kernel or a problem needs of a host and this one lacks: never the kernel's fault."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from evaluator.host import gpus
from evaluator.host.host import Host, offers_multicast
from evaluator.host.links import lacks_counters
from evaluator.host.thunderkittens import thunderkittens_root
from evaluator.messages.job import Device, Job, Placement
from evaluator.messages.manifest import BadManifestError, manifest_of
from evaluator.messages.needs import BETWEEN_GPUS, Ability, in_words, needs
from evaluator.messages.source_files import parts_of
from evaluator.sandbox import processor_support
from problems.spec import Problem

# Set by a worker from what `check_host` found: names of probes that failed in a sandbox.
LACKS, LACKS_SEPARATOR = "PKB_HOST_LACKS", "; "

# By what a probe's name begins with, up to a comma.
_PROBED = {
    "NCCL": Ability.NCCL,
    "peer copies": Ability.PEER_ACCESS,
    "symmetric memory": Ability.SYMMETRIC_MEMORY,
    "Triton": Ability.TRITON,
    "nvcc": Ability.NVCC,
    "ThunderKittens": Ability.THUNDERKITTENS,
}


def abilities() -> frozenset[Ability]:
    """Return what this host has for kernels on its GPUs, as far as settings, tools and the probes
    of a worker tell."""
    return frozenset(Ability) - _lacks().keys()


def lacking(job: Job, problem: Problem, host: Host) -> str | None:
    """Return the first thing that is missing, in one sentence; None where nothing is."""
    if absent := _absent_package(job.source):
        return (
            f"the kernel declares {absent}, which this host lacks; /environment lists what it has"
        )
    if job.device is Device.CPU:
        return processor_support.lacking(job)
    return _lacking_gpus(job, problem, host) or _lacking_ability(job, problem)


def _absent_package(source: str) -> str | None:
    """Return the first package that a manifest declares and this host lacks. What is wrong with a
    manifest the run says."""
    try:
        declared = manifest_of(parts_of(source)).dependencies
    except BadManifestError:
        return None
    tops = [name.partition(".")[0] for name in declared]
    return next((name for name in tops if importlib.util.find_spec(name) is None), None)


def _lacking_gpus(job: Job, problem: Problem, host: Host) -> str | None:
    required, is_shared = problem.requirements, job.placement is Placement.SHARED
    if is_shared and not host.gpus:
        return "ranks that share a GPU need one; this host offers none"
    if len(host.gpus) < job.world_size and not is_shared:
        return f"{job.world_size} ranks need as many GPUs; this host offers {len(host.gpus)}"
    is_linked = required.peer_access and not is_shared
    if is_linked and (apart := gpus.unlinked(host.gpus)):
        return f"GPUs {apart[0][0]} and {apart[0][1]} cannot reach each other's memory"
    if not is_shared and lacks_counters(host.gpus):
        return "calls are timed where the driver counts what leaves a GPU; this one does not"
    least_gib = min(gpu.memory_bytes for gpu in host.gpus) / (1 << 30)
    if job.size != "tiny" and least_gib < required.memory_gib:
        return f"judging this needs {required.memory_gib} GiB a GPU; here it has {least_gib:.0f}"
    return None


def _lacking_ability(job: Job, problem: Problem) -> str | None:
    required = problem.requirements
    needed = needs(
        job.source,
        job.backend,
        world_size=job.world_size,
        peer_access=required.peer_access,
        multicast=required.multicast,
        placement=job.placement,
    )
    why = _lacks()
    if job.placement is Placement.SHARED:
        why |= dict.fromkeys(BETWEEN_GPUS, "ranks that share a GPU cannot have it")
    for ability in Ability:
        if ability in needed and ability in why:
            return f"the kernel needs {in_words([ability], job.source)[0]}; {why[ability]}"
    return None


def _lacks() -> dict[Ability, str]:
    """Return what this host lacks, and why."""
    found = {Ability.OTHER_RANKS: "this run has another number"}
    for ability in (Ability.NVSHMEM, Ability.NCCL_DEVICE_API, Ability.HIP):
        found[ability] = "no host of this judge offers that yet"
    if not offers_multicast():
        found[Ability.MULTICAST] = "the operator of this host has not turned it on"
    if not _has_nvcc():
        found[Ability.NVCC] = "it is not installed here (set CUDA_HOME where it is elsewhere)"
    if importlib.util.find_spec("triton") is None:
        found[Ability.TRITON] = "it is not installed here"
    if not (root := thunderkittens_root()).is_dir():
        found[Ability.THUNDERKITTENS] = f"there is none at THUNDERKITTENS_ROOT={root}"
    for lack in filter(None, os.environ.get(LACKS, "").split(LACKS_SEPARATOR)):
        name = lack.partition(",")[0]
        found.setdefault(_PROBED[name], f"{lack} does not work on this host's GPUs in a sandbox")
    return found


def _has_nvcc() -> bool:
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("nvcc") is not None or Path(home, "bin", "nvcc").is_file()
