"""Time what the host does for a call of a house kernel, without a GPU: `house_host.py [FILE ...]`.

Where a GPU has little to do, a call takes as long as Python needs for it. Method: this process is
rank 0 of a faked group. Triton compiles for a Hopper GPU and looks arguments up as ever, but its
driver is replaced: launches return at once. Tensors lie in ordinary memory, where torch's own
operations do compute: small inputs, of size `tiny`, keep that short, but it is a processor's time.
Inputs are the judge's of three trials in turns, whose lengths may differ. The best of a hundred
loops counts. Not in the figures: the driver's own share of a launch, and waiting for a GPU.

A line for each file: microseconds, launches and torch's operations a call (no views, no
allocations), or `not told`, and why: launches compute nothing, so none may need their results.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from compile_house import CAPABILITY, SHARED_BYTES, WARP
from house_calls import IMPORTED, Place, inputs, loaded

from evaluator.messages.job import Backend
from tests.evaluator.house_files import HouseKernel, all_house_kernels, read

THREADS = 1024  # that a block may have
TABLE = 1 << 40  # an address, as wide as one of a GPU
READS = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "equal"}
ALLOCATES = {"empty", "empty_like", "empty_strided", "new_empty", "_unsafe_view"}
TRIALS, LOOPS, LOOP_US = 3, 100, 4_000  # short, so that some meet a quiet host


class ReadsBackError(RuntimeError):
    """The host asks for a value that a GPU would have to compute first; the message says how."""


class Driver:
    """Stands in for Triton's driver: a GPU that does nothing, and counts how often."""

    def __init__(self) -> None:
        from triton.backends.compiler import GPUTarget

        self.launches, target = 0, GPUTarget("cuda", CAPABILITY, WARP)
        self.get_current_target = lambda: target
        self.get_current_device = self.get_current_stream = lambda _=None: 0
        self.launcher_cls = lambda *_: self.launch
        self.utils = SimpleNamespace(
            load_binary=lambda *_: (0, 0, WARP, 0, THREADS),
            get_device_properties=lambda _: {"max_shared_mem": SHARED_BYTES},
        )

    def launch(self, *_: object) -> None:
        self.launches += 1


def operations(solution: Any, calls: list[list[object]]) -> int:
    """Count torch's operations in second calls: first ones make memory. Raises ReadsBackError."""
    from torch.utils._python_dispatch import TorchDispatchMode

    found = Counter[str]()

    def seen(_: object, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (name := op.overloadpacket.__name__) in READS:
            raise ReadsBackError(f"aten::{name}")
        found[name] += not op.is_view and name not in ALLOCATES
        return op(*args, **(kwargs or {}))

    watch: Any = type("Watch", (TorchDispatchMode,), {"__torch_dispatch__": seen})
    with watch(), patch("torch.Tensor.tolist", side_effect=ReadsBackError("Tensor.tolist")):
        for _ in range(2):
            found.clear()
            for call in calls:
                solution(*call)
    return found.total()


def join_nobody(ranks: int) -> None:
    """Join a group of which no other rank exists, and whose symmetric memory is this process's."""
    import torch
    import torch.distributed as dist
    from torch.distributed import _symmetric_memory
    from torch.testing._internal.distributed.fake_pg import FakeStore

    handle = SimpleNamespace(buffer_ptrs_dev=TABLE, barrier=lambda: None)
    vars(_symmetric_memory).update(empty=torch.empty, rendezvous=lambda *_: handle)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)


def told(kernel: HouseKernel, driver: Driver, place: Place) -> tuple[float, str]:
    """Return the microseconds of a call, and with them what happens in one."""
    from problems.mesh import arguments as arguments_of

    made = inputs(kernel, place, slice(TRIALS))[1]
    calls = [list(arguments_of(one, groups)) for one, groups in made]
    solution = loaded(kernel).solution
    counted = operations(solution, calls) / len(calls)

    def call_us(rounds: int) -> float:
        began = time.perf_counter()
        for _ in range(rounds):
            for call in calls:
                solution(*call)
        return 1e6 * (time.perf_counter() - began) / rounds / len(calls)

    rounds, driver.launches = int(LOOP_US / len(calls) / call_us(3)) + 1, 0
    us = min(call_us(rounds) for _ in range(LOOPS))
    launches = driver.launches / (LOOPS * rounds * len(calls))
    return us, f"{us:9.1f} us {launches:6.1f} launches {counted:6.1f} operations"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="default: all of fixtures/house")
    parser.add_argument("--size", default="tiny")
    given, found = parser.parse_args(), []
    os.environ.pop("TRITON_INTERPRET", None)
    sys.path.insert(0, IMPORTED)
    wanted = list(map(read, given.files)) or all_house_kernels()
    kernels = [kernel for kernel in wanted if kernel.backend is Backend.TRITON]
    with tempfile.TemporaryDirectory(prefix="house-host-") as os.environ["TRITON_CACHE_DIR"]:
        import torch
        from triton.runtime import driver

        torch.set_num_threads(1)
        place = Place(rank=0, ranks=2, device=torch.device("cpu"), size=given.size)
        join_nobody(place.ranks)
        fake = Driver()
        driver.set_active(fake)
        for kernel in kernels:
            try:
                us, text = told(kernel, fake, place)
                found.append(us)
            except Exception as error:  # noqa: BLE001 - what was not computed makes all kinds
                text = f"  not told: {type(error).__name__}: {str(error).strip()[:80]}"
            print(f"{kernel.path.stem:<40} {text}", flush=True)
    print(f"{len(found)} of {len(kernels)} told, {median(found or [0.0]):.1f} us in the median")
    return 0


if __name__ == "__main__":
    sys.exit(main())
