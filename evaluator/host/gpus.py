"""Describes the GPUs of this host as its driver does (NVML): which there are, how they fare."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from evaluator.messages.faults import EvaluatorError
from evaluator.messages.report import GpuState

# What a program needs of /dev besides its GPUs.
# nvmlGpuP2PCapsIndex_t of nvml.h; the library's own names for them are tuples in some versions.
_PEER_READ, _PEER_WRITE = 0, 1
SHARED_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """Identifies a GPU. `index` counts as NVML does; `minor` is the number of its device file."""

    index: int
    minor: int
    uuid: str
    name: str
    memory_bytes: int

    @property
    def device_file(self) -> str:
        """Return the path of its device file."""
        return f"/dev/nvidia{self.minor}"


def present() -> tuple[Gpu, ...]:
    """Return every GPU of this host; none where there is no driver."""
    with session() as nvml:
        if nvml is None:
            return ()
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        return tuple(
            Gpu(
                index=index,
                minor=nvml.nvmlDeviceGetMinorNumber(handle),
                uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
                name=_text(nvml.nvmlDeviceGetName(handle)),
                memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
            )
            for index, handle in enumerate(handles)
        )


def offered() -> tuple[Gpu, ...]:
    """Return the GPUs that this host judges on: those that PKB_GPUS names by index, or all.

    Raises EvaluatorError where it names one that is not there.
    """
    found = {gpu.index: gpu for gpu in present()}
    wanted = os.environ.get("PKB_GPUS", "")
    try:
        indices = [int(word) for word in wanted.split(",")] if wanted else list(found)
        return tuple(found[index] for index in indices)
    except (ValueError, KeyError):
        raise EvaluatorError(
            f"PKB_GPUS={wanted} should list GPUs of this host by index: it has {len(found)}"
        ) from None


def device_files(gpus: Sequence[Gpu]) -> list[str]:
    """Return what a sandbox for these GPUs may see of /dev."""
    own = [gpu.device_file for gpu in gpus]
    return [*own, *(path for path in SHARED_DEVICES if os.path.exists(path))]


def visible(gpus: Sequence[Gpu]) -> dict[str, str]:
    """Return settings with which CUDA counts these GPUs, and no other, from 0."""
    uuids = ",".join(gpu.uuid for gpu in gpus)
    return {"CUDA_VISIBLE_DEVICES": uuids, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def states(gpus: Sequence[Gpu]) -> tuple[GpuState, ...]:
    """Return clocks, temperature, power and reasons for slowing down, now."""
    with session() as nvml:
        return () if nvml is None else tuple(_state(nvml, gpu) for gpu in gpus)


def driver_version() -> str | None:
    """Return the driver's version; None where there is no driver."""
    with session() as nvml:
        return None if nvml is None else _text(nvml.nvmlSystemGetDriverVersion())


def compute_capability(gpus: Sequence[Gpu]) -> str | None:
    """Return that of the first GPU, as `9.0`; None if no driver says it."""
    with session() as nvml:
        if nvml is None or not gpus:
            return None
        try:
            major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle_of(nvml, gpus[0]))
        except nvml.NVMLError:
            return None
        return f"{major}.{minor}"


def used_bytes(gpus: Sequence[Gpu]) -> list[int]:
    """Return the bytes of memory in use on each GPU."""
    with session() as nvml:
        if nvml is None:
            return []
        return [int(nvml.nvmlDeviceGetMemoryInfo(handle_of(nvml, gpu)).used) for gpu in gpus]


def unlinked(gpus: Sequence[Gpu]) -> list[tuple[int, int]]:
    """Return the pairs, by index, of which one cannot read or write the other's memory."""
    with session() as nvml:
        if nvml is None:
            return []
        return [
            (one.index, other.index)
            for one, other in permutations(gpus, 2)
            if any(
                nvml.nvmlDeviceGetP2PStatus(handle_of(nvml, one), handle_of(nvml, other), way)
                != nvml.NVML_P2P_STATUS_OK
                for way in (_PEER_READ, _PEER_WRITE)
            )
        ]


def processes(gpus: Sequence[Gpu]) -> set[int]:
    """Return the pids that hold one of these GPUs, as the driver counts them."""
    return {pid for gpu in gpus for pid in held_bytes(gpu)}


def held_bytes(gpu: Gpu) -> dict[int, int]:
    """Return what each process holds of a GPU's memory, in bytes by pid."""
    with session() as nvml:
        if nvml is None:
            return {}
        running = nvml.nvmlDeviceGetComputeRunningProcesses(handle_of(nvml, gpu))
        return {process.pid: int(process.usedGpuMemory or 0) for process in running}


def _state(nvml: Any, gpu: Gpu) -> GpuState:
    handle = handle_of(nvml, gpu)
    throttled = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    return GpuState(
        name=gpu.name,
        sm_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        memory_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        temperature_c=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        throttle_reasons=tuple(
            name for name, constant in _THROTTLING.items() if throttled & getattr(nvml, constant)
        ),
    )


_THROTTLING = {
    "power cap": "nvmlClocksEventReasonSwPowerCap",
    "hardware slowdown": "nvmlClocksThrottleReasonHwSlowdown",
    "software thermal": "nvmlClocksEventReasonSwThermalSlowdown",
    "hardware thermal": "nvmlClocksThrottleReasonHwThermalSlowdown",
    "power brake": "nvmlClocksThrottleReasonHwPowerBrakeSlowdown",
    "applications clocks": "nvmlClocksEventReasonApplicationsClocksSetting",
}


def handle_of(nvml: Any, gpu: Gpu) -> Any:
    """Return the library's handle of a GPU."""
    return nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@contextlib.contextmanager
def session() -> Iterator[Any]:
    """Yield the library, initialised, or None where there is no driver to ask."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    except pynvml.NVMLError as error:
        raise EvaluatorError(f"the GPU driver could not be asked: {error}") from None
    finally:
        pynvml.nvmlShutdown()
