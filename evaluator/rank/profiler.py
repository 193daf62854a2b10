"""Records of this rank, in the profile pass, the events of a few calls, and what it built.

It runs beside the submission, so all of it may be forged; `profiling/` reads it as untrusted bytes.
Nothing here may end a run: a failure becomes an answer that holds no events.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Any

import torch
from torch.autograd.profiler import profile

from evaluator.profiling.mechanism import instruction_counts
from evaluator.profiling.timeline import MAX_BYTES, MAX_EVENTS, MAX_NAME_CHARS

ROUNDS = 3
PAUSE_S = 0.001
DISASSEMBLY_S, DISASSEMBLERS = 10.0, 8  # each takes 0.4 s for a kernel of Triton
MAX_BINARIES = 64
MAX_LINE_BYTES = 4096
MAX_SASS_BYTES = 64 << 20  # of each binary
_DEVICE_ACTIVITIES = ("kernel", "gpu_memcpy", "gpu_memset")
_COLLECTIVES = ("gloo:", "mpi:")

Row = tuple[str, str, float, float, int, int | None, bool]


def record(calls: Callable[[], None], device: str) -> bytes:
    """Run `calls` ROUNDS times, the last one under torch's profiler; its events as JSON.

    The first round is left alone; the second, already profiled, waits for ranks whose profiler
    starts later. A rank whose profiler fails still takes part in all rounds, because others wait
    for it in their collectives. `device` is `cuda` or `cpu`.
    """
    begun = 0

    def one_round() -> None:
        nonlocal begun
        begun += 1
        calls()

    try:
        return _encoded(_recorded(one_round, device))
    except BaseException as error:  # noqa: BLE001 - a submission may raise anything
        traceback.print_exc()
        with contextlib.suppress(BaseException):
            while begun < ROUNDS:
                one_round()
        return _failed(type(error).__name__)


def device_code() -> bytes:
    """Count the instructions of each family in the binaries that this sandbox built; return JSON.

    Ranks share their build folders: asking one rank is enough.
    """
    try:
        tool = _disassembler()
        if tool is None:
            return _failed("cuobjdump is not installed")
        binaries, deadline = _binaries(), time.monotonic() + DISASSEMBLY_S
        with ThreadPoolExecutor(DISASSEMBLERS) as pool:
            found = pool.map(partial(_counted, tool, deadline), binaries)
            counts = sum(found, Counter[str]())
        return json.dumps({"instructions": counts, "binaries": len(binaries)}).encode()
    except BaseException as error:  # noqa: BLE001 - as above
        traceback.print_exc()
        return _failed(type(error).__name__)


def _failed(why: str) -> bytes:
    return json.dumps({"error": why}).encode()


def _recorded(one_round: Callable[[], None], device: str) -> dict[str, Any]:
    is_cuda = device == "cuda"
    one_round()
    _settle(is_cuda)
    with _profiler(is_cuda) as profiler:
        one_round()
        _settle(is_cuda)
        time.sleep(PAUSE_S)  # clocks of processor and GPU may differ by microseconds
        began_ns = time.time_ns()
        time.sleep(PAUSE_S)
        one_round()
        _settle(is_cuda)
    recorded = profiler.kineto_results.events()
    events = [event for event in recorded if event.start_ns() >= began_ns]
    events.sort(key=lambda event: event.start_ns())
    rows = list(_device_rows(events, began_ns) if is_cuda else _cpu_rows(events, began_ns))
    return {
        "device": device,
        "origin_ns": began_ns,
        "graph_launches": sum(event.name() == "cudaGraphLaunch" for event in events),
        "dropped": 0,
        "events": rows,
    }


def _settle(is_cuda: bool) -> None:
    if is_cuda:
        torch.cuda.synchronize()


def _profiler(is_cuda: bool) -> Any:
    """Use torch's profiler without torch.profiler around it, whose start imports 800 modules: 2 s.

    Where this torch can tell (from 2.10 on) it is asked for the bytes and devices of copies.
    """
    try:
        config = torch._C._profiler._ExperimentalConfig(expose_kineto_event_metadata=True)
    except TypeError:
        config = None
    return profile(
        use_kineto=True,
        use_cpu=not is_cuda,
        use_device="cuda" if is_cuda else None,
        experimental_config=config,
    )


def _device_rows(events: Iterable[Any], origin_ns: int) -> Iterator[Row]:
    """Yield kernels, copies and fills of the GPU; not the annotations that torch shows beside
    them."""
    for event in events:
        if event.device_type().name != "CUDA" or _asked(event, "is_user_annotation", False):
            continue
        if _asked(event, "activity_type", "kernel") not in _DEVICE_ACTIVITIES:
            continue
        name = event.name()
        kind = {"Memcpy": "memcpy", "Memset": "memset"}.get(name.split(" ")[0], "kernel")
        facts = _facts(_asked(event, "metadata_json", ""))
        crosses = facts.get("fromDevice") != facts.get("toDevice")
        is_peer = kind == "memcpy" and ("PtoP" in name or crosses)
        nbytes = None if kind == "kernel" else facts.get("bytes")
        stream = event.device_resource_id()
        yield (*_times(event, name, kind, origin_ns), stream, nbytes, is_peer)


def _cpu_rows(events: Iterable[Any], origin_ns: int) -> Iterator[Row]:
    """Yield the operators that no other contains, and collectives, which run on threads of their
    own."""
    streams: dict[int, int] = {}
    ends_ns: dict[int, int] = {}
    for event in events:
        name, thread = event.name(), event.start_thread_id()
        is_collective = name.startswith(_COLLECTIVES)
        if not is_collective:
            is_inside = event.start_ns() < ends_ns.get(thread, 0)
            if is_inside or _asked(event, "is_user_annotation", False):
                continue
            ends_ns[thread] = event.end_ns()
        stream = streams.setdefault(thread, len(streams))
        yield (*_times(event, name, "op", origin_ns), stream, None, False)


def _times(event: Any, name: str, kind: str, origin_ns: int) -> tuple[str, str, float, float]:
    start_us = (event.start_ns() - origin_ns) / 1e3
    return name[:MAX_NAME_CHARS], kind, round(start_us, 3), round(event.duration_ns() / 1e3, 3)


def _asked(event: Any, method: str, otherwise: Any) -> Any:
    """Return what an event says where this version of torch lets it."""
    return getattr(event, method, lambda: otherwise)()


def _facts(metadata: str) -> dict[str, int]:
    """Return the whole numbers in an event's metadata: JSON without its outer braces."""
    return {key: int(value) for key, value in re.findall(r'"(\w+)": (\d+)\b(?!\.)', metadata)}


def _encoded(message: dict[str, Any]) -> bytes:
    """Encode at most MAX_EVENTS events, and fewer where they would not fit into MAX_BYTES."""
    rows: list[Row] = message["events"]
    kept = rows[:MAX_EVENTS]
    while True:
        message |= {"events": kept, "dropped": len(rows) - len(kept)}
        text = json.dumps(message, separators=(",", ":")).encode()
        if len(text) <= MAX_BYTES:
            return text
        kept = kept[: len(kept) // 2]


def _disassembler() -> str | None:
    """Find CUDA's own, or the one that Triton brings along."""
    folders = [os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin"]
    triton = importlib.util.find_spec("triton")
    for place in (triton.submodule_search_locations or []) if triton else []:
        folders.append(f"{place}/backends/nvidia/bin")
    return shutil.which("cuobjdump", path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))


def _binaries() -> list[Path]:
    places = (("TORCH_EXTENSIONS_DIR", "*.so"), ("TRITON_CACHE_DIR", "*.cubin"))
    found = [
        path
        for variable, pattern in places
        if variable in os.environ
        for path in sorted(Path(os.environ[variable]).rglob(pattern))
    ]
    return found[:MAX_BINARIES]


def _counted(tool: str, deadline: float, binary: Path) -> Counter[str]:
    """Count a binary's instructions by family, as far as time and MAX_SASS_BYTES reach."""
    process = subprocess.Popen(
        [tool, "-sass", str(binary)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    timer = threading.Timer(max(0.0, deadline - time.monotonic()), _end, [process])
    timer.start()
    try:
        return Counter(instruction_counts(_lines(process.stdout)))
    finally:
        timer.cancel()
        _end(process)
        process.stdout.close()
        process.wait()


def _lines(output: IO[bytes]) -> Iterator[str]:
    left_bytes = MAX_SASS_BYTES
    while left_bytes > 0 and (line := output.readline(MAX_LINE_BYTES)):
        left_bytes -= len(line)
        yield line.decode("ascii", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it and what it started, which may hold its output open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
