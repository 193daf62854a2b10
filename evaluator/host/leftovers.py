"""Removes what a judge that was killed could not: its empty cgroup leaves and its folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evaluator.host import cgroup, freezer, held

FOLDER_PREFIX = "pkb-judge-"
DYING_S = 0.2


def own_folder() -> str:
    """Make a fresh temporary folder that names its owner, so that others know when it is left
    over."""
    folder = tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-")
    held.hold(Path(folder))
    return folder


def remove_folder(folder: str) -> None:
    """Remove a folder that `own_folder` has made."""
    shutil.rmtree(folder, ignore_errors=True)
    held.let_go(Path(folder))


def judges() -> set[int]:
    """Return the pids of the judges that run on this host."""
    folders = Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*")
    owners = {path.name.removeprefix(FOLDER_PREFIX).partition("-")[0] for path in folders}
    return {int(owner) for owner in owners if owner.isdigit()}


def remove_leftovers() -> None:
    """Remove whatever carries the pid of a process that is gone, and is held by none; a leaf that
    still holds one stays."""
    for path in _of_the_dead(Path(tempfile.gettempdir()), FOLDER_PREFIX):
        shutil.rmtree(path, ignore_errors=True)
    for parent in dict.fromkeys((*freezer.parents(), *cgroup.parents())):
        for path in _of_the_dead(parent, cgroup.PREFIX):
            freezer.thaw_leftover(path)
            cgroup.remove([path], DYING_S)


def _of_the_dead(parent: Path, prefix: str) -> Iterator[Path]:
    for path in parent.glob(f"{prefix}*"):
        owner = path.name.removeprefix(prefix).partition("-")[0]
        is_here = not owner.isdigit() or Path("/proc", owner).exists()
        if not is_here and not held.is_held(path):
            yield path
