"""Compile the Triton kernels of the house files for a Hopper GPU, without one.

    python -m tests.evaluator.compile_house [FILE ...] [--dtypes bfloat16,float32] [--hidden]

Method: two ranks on processors call each file's `solution` by Triton's interpreter, on the judge's
inputs of size `tiny` (with `--hidden` of an odd shape, too), and write down what every launch is
given. Then this process, in which the interpreter is off, hands that to Triton's own just-in-time
compiler as for a GPU of compute capability 9.0: it specialises by the same types, values and
alignments and makes the same machine code, by the ptxas of Triton's wheel; nothing is launched.
Kernels that no launch has reached are looked for with four ranks, then with 768 times 512 values.

A line for each fault, with file and line: what the compiler refuses, what takes more shared memory
than a block may have, what was never launched. Exit status 0: no fault.
"""

from __future__ import annotations

import argparse
import ast
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from evaluator.messages.job import Backend
from tests.evaluator.house_calls import (
    IMPORTED,
    TRIALS,
    Launch,
    Place,
    Pointer,
    calls,
    join,
    loaded,
    what_failed,
)
from tests.evaluator.house_files import HouseKernel, all_house_kernels, jitted, read

STEPS = ((2, "tiny"), (4, "tiny"), (4, "middle"))  # ranks and size
CAPABILITY, WARP, SHARED_BYTES = 90, 32, 227 << 10  # of a block on a Hopper GPU


class NotInterpreted(RuntimeError):
    """The ranks did not get through; the message says what one of them printed last."""


def be_rank(given: argparse.Namespace) -> None:
    """Call kernels by the interpreter, and write down their launches."""
    import torch
    from triton.runtime.interpreter import InterpretedFunction

    rank, ranks, folder, size, dtype = given.as_rank
    trials = slice(None, None, TRIALS - 1) if given.hidden else slice(1)
    launches: list[Launch] = []
    interpreted = InterpretedFunction.run

    def run(function: Any, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        seen, options = map(described, arguments), {k: described(v) for k, v in named.items()}
        launches.append(Launch(kernel.path, function.__name__, tuple(seen), options))
        return interpreted(function, *arguments, grid=grid, warmup=warmup, **named)

    InterpretedFunction.run = run
    device = join(folder, int(rank), int(ranks), given.limit_s)
    place = Place(rank=int(rank), ranks=int(ranks), device=device, size=size, dtype=dtype)
    for kernel in map(read, given.files):
        torch.distributed.barrier()
        for _ in calls(kernel, place, trials):
            pass
    Path(folder, f"launches{rank}").write_bytes(pickle.dumps(launches))


def described(value: Any) -> Any:
    """Return a launch's argument as another process can have it."""
    if hasattr(value, "data_ptr"):
        return Pointer(value.dtype, value.data_ptr() % 16 == 0)
    return value


def recorded(
    given: argparse.Namespace, paths: list[Path], ranks: int, size: str, dtype: str
) -> list[Launch]:
    """Return the launches of all ranks that call these files. Raises NotInterpreted."""
    with tempfile.TemporaryDirectory(prefix="compile-house-") as folder:
        limits = ["--limit-s", str(given.limit_s), *(["--hidden"] if given.hidden else [])]
        program = [
            sys.executable,
            "-m",
            "tests.evaluator.compile_house",
            *map(str, paths),
            *limits,
            "--as-rank",
        ]
        own = [str(ranks), folder, size, dtype]
        commands = [[*program, str(rank), *own] for rank in range(ranks)]
        if printed := what_failed(commands, folder, given.limit_s):
            raise NotInterpreted(f"{size}, {dtype}: {printed}")
        written = [Path(folder, f"launches{rank}").read_bytes() for rank in range(ranks)]
        return [launch for text in written for launch in pickle.loads(text)]


def launched(path: Path) -> dict[str, int]:
    """Return the lines of a file's kernels that no other kernel calls."""
    found = jitted(path.read_text())
    named = {
        node.id for one in found.values() for node in ast.walk(one) if isinstance(node, ast.Name)
    }
    return {name: node.lineno for name, node in found.items() if name not in named}


def all_launches(given: argparse.Namespace, paths: list[Path], dtype: str) -> list[Launch]:
    """Return launches of every kernel, as far as a step reaches it. Raises NotInterpreted."""
    found: list[Launch] = []
    left = paths
    for ranks, size in STEPS:
        if left:
            found += recorded(given, left, ranks, size, dtype)
        reached = {(launch.path, launch.kernel) for launch in found}
        left = [p for p in left if any((p, name) not in reached for name in launched(p))]
    return found


def use_hopper() -> None:
    """Have Triton compile for a GPU that is not here."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    class Hopper:
        """Stands in for a driver: what the compiler asks of it, and no more."""

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:
            return 0

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", CAPABILITY, WARP)

    driver.set_active(Hopper())


def compiled(launch: Launch, module: ModuleType) -> Any:
    """Compile what a launch needs, unless an earlier one needed the same."""
    from triton.runtime.jit import MockTensor

    class Unaligned(MockTensor):  # type: ignore[misc]
        @staticmethod
        def data_ptr() -> int:
            return 8

    def restored(value: Any) -> Any:
        if not isinstance(value, Pointer):
            return value
        return (MockTensor if value.is_aligned else Unaligned)(value.dtype)

    options = {name: restored(value) for name, value in launch.options.items()}
    function = getattr(module, launch.kernel)
    return function.warmup(*map(restored, launch.arguments), grid=(1,), **options)


def faults(kernel: HouseKernel, launches: list[Launch]) -> Iterator[str]:
    """Compile a file's kernels; yield what is wrong with each, once."""
    module, entries = loaded(kernel), launched(kernel.path)
    for name, line in entries.items():
        own = [launch for launch in launches if launch.kernel == name]
        if not own:
            yield f"{kernel.path}:{line}: no launch reached {name}"
        for launch in own:
            try:
                shared = compiled(launch, module).metadata.shared
            except Exception as error:  # noqa: BLE001 - the compiler raises all kinds
                at, why = place_of(error, kernel.path) or line, str(error).strip()
                yield f"{kernel.path}:{at}: {name}: {type(error).__name__}: {why}"
                break
            if shared > SHARED_BYTES:
                yield f"{kernel.path}:{line}: {name}: takes {shared} bytes of shared memory"
                break


def place_of(error: BaseException | None, path: Path) -> int | None:
    """Return the line of the innermost function of the file that the compiler was in."""
    text, line = path.read_text(), None
    while error is not None:
        source, at = getattr(error, "src", None), getattr(getattr(error, "node", None), "lineno", 0)
        if source and at and source in text:
            line = text[: text.index(source)].count("\n") + at
        error = error.__cause__
    return line


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="default: all of fixtures/house")
    parser.add_argument("--dtypes", default="bfloat16", help="separated by commas")
    parser.add_argument("--hidden", action="store_true", help="also inputs of an odd shape")
    parser.add_argument("--limit-s", type=float, default=300.0, help="longest time to interpret")
    parser.add_argument("--as-rank", nargs=5, help=argparse.SUPPRESS)
    return parser.parse_intermixed_args()


def main() -> int:
    given = arguments()
    if given.as_rank:
        be_rank(given)
        return 0
    os.environ.pop("TRITON_INTERPRET", None)
    sys.path.insert(0, IMPORTED)
    kernels = list(map(read, given.files)) or all_house_kernels()
    kernels = [kernel for kernel in kernels if kernel.backend is Backend.TRITON]
    began, found = time.monotonic(), 0
    launches: list[Launch] = []
    try:
        for dtype in given.dtypes.split(","):
            launches += all_launches(given, [kernel.path for kernel in kernels], dtype)
    except NotInterpreted as error:
        print(f"not interpreted: {error}")
        return 1
    print(f"{len(launches)} launches recorded after {time.monotonic() - began:.0f} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="compile-house-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        use_hopper()
        from problems.running.mesh import join_world

        join_world("cpu", f"{folder}/store", 0, 1, is_shared=True)
        for kernel in kernels:
            print(kernel.path.name, flush=True)  # a compiler that crashes tells no more
            own = [launch for launch in launches if launch.path == kernel.path]
            for fault in faults(kernel, own):
                found += 1
                print(fault, flush=True)
    count = sum(len(launched(kernel.path)) for kernel in kernels)
    print(
        f"{count} kernels of {len(kernels)} files, {found} faults, {time.monotonic() - began:.0f} s"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
