"""Makes /proc of a sandbox read-only, and hides its files that only root may read.

Where root starts the sandbox, the sandbox's user owns every file of /proc: a kernel setting that it
may write is a way out, and a file such as kpageflags shows the memory of the whole host.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def arguments(*, with_cuda: bool) -> list[str]:
    """Return bubblewrap's arguments. With CUDA the processes stay writable, as CUDA does not start
    where it cannot name its threads."""
    sources = {}
    for entry in sorted(Path("/proc").iterdir()):
        if entry.name.isdigit() or entry.is_symlink():
            continue
        mode = entry.stat().st_mode
        if stat.S_ISREG(mode) and not mode & stat.S_IROTH:
            sources[entry] = os.devnull
        elif with_cuda and (stat.S_ISDIR(mode) or mode & 0o222):
            sources[entry] = str(entry)
    binds = [part for to, source in sources.items() for part in ("--ro-bind", source, str(to))]
    return binds if with_cuda else [*binds, "--remount-ro", "/proc"]
