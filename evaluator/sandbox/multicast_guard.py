"""Ends a sandbox whose kernel calls NVLink multicast where the host's operator has not turned it
on.

A library that the loader puts before all others in every process of a sandbox, by a file of the
sandbox that no environment takes away. It sees what the loader resolves, and nothing else.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from evaluator.host.host import multicast_is_off

SOURCE = Path(__file__).with_suffix(".c")
ENDING_SIGNAL = int(signal.SIGRTMAX)
LIBRARY, PRELOADED = "/etc/multicast_guard.so", "/etc/ld.so.preload"
UNGUARDED = "without a working C compiler NVLink multicast is off by environment variables alone"
_COMPILER_S = 60.0


def is_available() -> bool:
    """Return whether this host can guard: it needs a C compiler."""
    return _compiled() is not None


def arguments(settings: Mapping[str, str]) -> tuple[list[str], list[int]]:
    """Return what tells bubblewrap to load the guard, and the descriptors that it reads it from;
    nothing without a compiler, or where the ranks' settings leave multicast on."""
    library = _compiled() if multicast_is_off(settings) else None
    if library is None:
        return [], []
    files = {LIBRARY: library, PRELOADED: f"{LIBRARY}\n".encode()}
    fds = [_descriptor(content) for content in files.values()]
    named = zip(fds, files, strict=True)
    return [part for fd, path in named for part in ("--ro-bind-data", str(fd), path)], fds


def has_ended(returncode: int | None) -> bool:
    """Return whether a sandbox's first program, whose exit status this is, was ended by the
    guard."""
    return returncode in (-ENDING_SIGNAL, 128 + ENDING_SIGNAL)


@functools.cache
def _compiled() -> bytes | None:
    compiler = shutil.which("gcc") or shutil.which("g++") or shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory(prefix="pkb-multicast-") as folder:
        library = Path(folder, "guard.so")
        flags = [
            "-O2",
            "-fPIC",
            "-shared",
            "-fvisibility=hidden",
            f"-DENDING_SIGNAL={ENDING_SIGNAL}",
        ]
        command = [compiler, "-x", "c", *flags, "-o", str(library), str(SOURCE), "-ldl"]
        done = subprocess.run(command, capture_output=True, timeout=_COMPILER_S, check=False)
        return library.read_bytes() if done.returncode == 0 else None


def _descriptor(content: bytes) -> int:
    fd = os.memfd_create("multicast_guard")
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
