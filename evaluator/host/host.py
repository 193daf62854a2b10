"""Reserves what one run uses of this host: its GPUs, which it has for itself while it is timed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator.host import gpus
from evaluator.host.cores import Cores, share
from evaluator.host.gpus import Gpu
from evaluator.host.leftovers import judges
from evaluator.host.processes import ancestry
from evaluator.messages.faults import DirtyHost
from evaluator.messages.job import Device, Job, Limits, Placement

CLEAN_S = 60.0
CLEAN_POLL_S = 0.05
MINOR_SHARE = 0.1  # of a GPU's memory: judges that wait hold less, unless they wait with a kernel
THREAD_POOLS = 3  # torch makes one for each thread of a rank that computes, and others
# Multimem through a switch can take a host's GPUs out of service: whoever runs hosts turns it on.
MULTICAST_OFF = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
}
# Of ranks on one GPU: symmetric memory takes several of them, gloo meets at the loopback device.
ON_ONE_GPU = {"TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES": "1", "GLOO_SOCKET_IFNAME": "lo"}


def offers_multicast() -> bool:
    """Return whether this host's operator lets kernels use NVLink multicast."""
    name = "TORCH_SYMM_MEM_DISABLE_MULTICAST"
    return os.environ.get(name, MULTICAST_OFF[name]) == "0"


def multicast_is_off(settings: Mapping[str, str]) -> bool:
    """Return whether ranks with this environment shall do without NVLink multicast altogether."""
    return all(settings.get(name) == off for name, off in MULTICAST_OFF.items())


@dataclass(frozen=True, kw_only=True)
class Host:
    """Describes the part of this host that a run may use; where ranks are `shared` on one GPU,
    others may be there, too."""

    gpus: tuple[Gpu, ...]
    threads: int
    cores: Cores | None = None
    placement: Placement = Placement.FULL

    @property
    def settings(self) -> dict[str, str]:
        """Return the environment of every rank, the oracle's too."""
        cores = str(os.cpu_count() or 1)
        own = {"OMP_NUM_THREADS": str(self.threads), "MAX_JOBS": cores}
        if not self.gpus:
            return own
        if self.placement is Placement.SHARED:
            return {**own, **MULTICAST_OFF, **ON_ONE_GPU, **gpus.visible(self.gpus)}
        multicast = {name: os.environ.get(name, off) for name, off in MULTICAST_OFF.items()}
        return {**own, **multicast, **gpus.visible(self.gpus)}

    def limits_of(self, job: Job) -> Limits:
        """Return what a side's sandbox may use: the job's limits, and the threads that torch starts
        in a rank because it has so many processors here."""
        own = THREAD_POOLS * job.world_size * self.threads
        return replace(job.limits, processes=job.limits.processes + own)

    @property
    def device_files(self) -> list[str]:
        """Return what its sandboxes may see of /dev."""
        return gpus.device_files(self.gpus) if self.gpus else []

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other run off these GPUs. Raises DirtyHost for other processes.

        A shared run, which is not timed, keeps away only those that are.
        """
        is_timed = self.placement is Placement.FULL
        with _locked(self.gpus, fcntl.LOCK_EX if is_timed else fcntl.LOCK_SH):
            if is_timed:
                self._refuse_strangers()
            yield

    @property
    def is_crowded(self) -> bool:
        """Return whether others hold a share of a GPU's memory that its run may have missed."""
        others = _seen_twice(lambda: processes_of_others(self.gpus))
        return bool(others) and any(
            sum(nbytes for pid, nbytes in gpus.held_bytes(gpu).items() if pid in others)
            > MINOR_SHARE * gpu.memory_bytes
            for gpu in self.gpus
        )

    def _refuse_strangers(self) -> None:
        """Raise DirtyHost for processes of no judge."""
        if strangers := _seen_twice(lambda: foreign_processes(self.gpus)):
            raise DirtyHost(f"processes {sorted(strangers)} are on this run's GPUs")

    def wait_until_clean(self) -> None:
        """Wait until nothing of this run is left on its GPUs. Raises DirtyHost where something
        stays."""
        if self.placement is Placement.SHARED:
            return
        deadline = time.monotonic() + CLEAN_S
        while self.gpus and (left := foreign_processes(self.gpus)):
            if time.monotonic() > deadline:
                raise DirtyHost(f"processes {sorted(left)} stay on this run's GPUs")
            time.sleep(CLEAN_POLL_S)


def host_for(job: Job) -> Host:
    """Return the first GPUs that this host offers, as many as there are ranks; maybe too few."""
    threads = max(1, (os.cpu_count() or 1) // job.world_size)
    if job.device is Device.CPU:
        return Host(gpus=(), threads=threads, placement=job.placement)
    if job.placement is Placement.SHARED:
        return Host(gpus=gpus.offered()[:1], threads=threads, placement=job.placement)
    return Host(
        gpus=gpus.offered()[: job.world_size],
        threads=threads,
        cores=share(job.world_size),
    )


def foreign_processes(own_gpus: Sequence[Gpu]) -> set[int]:
    """Return the pids on these GPUs that belong to no judge of this host."""
    known = judges()
    return {pid for pid in gpus.processes(own_gpus) if not known & set(ancestry(pid))}


def processes_of_others(own_gpus: Sequence[Gpu]) -> set[int]:
    """Return the pids on these GPUs that this process has not started."""
    own_pid = os.getpid()
    return {pid for pid in gpus.processes(own_gpus) if own_pid not in ancestry(pid)}


def _seen_twice(look: Callable[[], set[int]]) -> set[int]:
    """Return the pids that two looks find: a process that ends while it is looked at seems to be
    nobody's, or somebody else's."""
    found = look()
    if found:
        time.sleep(CLEAN_POLL_S)
        found &= look()
    return found


@contextlib.contextmanager
def _locked(own_gpus: Sequence[Gpu], kind: int) -> Iterator[None]:
    """Hold the lock of each GPU, taken in the same order by everybody."""
    with contextlib.ExitStack() as stack:
        for gpu in sorted(own_gpus, key=lambda gpu: gpu.uuid):
            path = Path(tempfile.gettempdir(), f"pkb-{gpu.uuid}.lock")
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            stack.callback(os.close, fd)
            fcntl.flock(fd, kind)
            stack.callback(fcntl.flock, fd, fcntl.LOCK_UN)  # forks have the descriptor too
        yield
