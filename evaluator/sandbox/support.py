"""Finds what a kernel or a problem needs of a host and this one lacks: never the kernel's fault."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path

from evaluator.host import gpus
from evaluator.host.host import Host
from evaluator.host.thunderkittens import needs_thunderkittens, thunderkittens_root
from evaluator.messages.job import Backend, Device, Job
from problems.spec import Problem

# Set by a worker from what `check_host` found: names of probes that failed in a sandbox.
LACKS, LACKS_SEPARATOR = "PKB_HOST_LACKS", "; "
MULTICAST_SETTING = "TORCH_SYMM_MEM_DISABLE_MULTICAST"

_NEEDED_BY_SOURCE = {
    "symmetric memory": r"_symmetric_memory|symm_mem",
    "Triton": r"\btriton\b",
    "nvcc": r"\bload_inline\b|\bcompile_cuda_extension\b",
}


def lacking(job: Job, problem: Problem, host: Host) -> str | None:
    """Return the first thing that is missing, in one sentence; None where nothing is."""
    if job.device is Device.CPU:
        return None
    return _lacking_gpus(job, problem, host) or _lacking_tools(job) or _lacking_ability(job)


def _lacking_gpus(job: Job, problem: Problem, host: Host) -> str | None:
    needs = problem.requirements
    if len(host.gpus) < job.world_size:
        return f"{job.world_size} ranks need as many GPUs; this host offers {len(host.gpus)}"
    if needs.peer_access and (apart := gpus.unlinked(host.gpus)):
        return f"GPUs {apart[0][0]} and {apart[0][1]} cannot reach each other's memory"
    if needs.multicast and host.settings[MULTICAST_SETTING] != "0":
        return f"the problem needs NVLink multicast, which {MULTICAST_SETTING} turns off here"
    least_gib = min(gpu.memory_bytes for gpu in host.gpus) / (1 << 30)
    if job.size != "tiny" and least_gib < needs.memory_gib:
        return f"judging this needs {needs.memory_gib} GiB a GPU; here it has {least_gib:.0f}"
    return None


def _lacking_tools(job: Job) -> str | None:
    compiles = job.backend in (Backend.CUDA, Backend.PARALLELKITTENS)
    if compiles and shutil.which("nvcc") is None and not _nvcc_of_cuda_home():
        return "the kernel needs nvcc, which is not installed (set CUDA_HOME where it is elsewhere)"
    if job.backend is Backend.TRITON and importlib.util.find_spec("triton") is None:
        return "the kernel needs Triton, which is not installed"
    root = thunderkittens_root()
    if needs_thunderkittens(job.source) and not root.is_dir():
        return f"the kernel needs ThunderKittens, and there is none at THUNDERKITTENS_ROOT={root}"
    return None


def _lacking_ability(job: Job) -> str | None:
    """Name what does not work in a sandbox of this host, and the source names."""
    for lack in filter(None, os.environ.get(LACKS, "").split(LACKS_SEPARATOR)):
        pattern = _NEEDED_BY_SOURCE.get(lack.partition(",")[0])
        if pattern is None or re.search(pattern, job.source):
            return f"{lack} does not work on this host's GPUs in a sandbox"
    return None


def _nvcc_of_cuda_home() -> bool:
    return Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "nvcc").is_file()
