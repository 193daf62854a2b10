"""Limits what each process of a sandbox may use, by rlimits set between fork and exec."""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Callable

from evaluator.host import processes
from evaluator.host.cgroup import Leaf
from evaluator.host.freezer import Freezer
from evaluator.host.load import MOST_PATIENCE
from evaluator.host.parent_death import die_with_parent
from evaluator.messages.job import Limits

OPEN_FILES = 4096  # of each process, which the hard limit has to allow
NEIGHBOURS = 8  # judges of the same user, whose sandboxes come and go


def before_exec_of(
    limits: Limits, leaf: Leaf | None = None, freezer: Freezer | None = None
) -> Callable[[], None]:
    """Return what a sandbox's first process does before its program: it dies with this one, joins
    its cgroups and limits itself."""
    launcher_pid, most_tasks = os.getpid(), _most_tasks(limits, leaf)
    # Of a processor, by all threads of a process: no less than they can have in the time of a run.
    most_s = math.ceil(MOST_PATIENCE * limits.phases_s) * (os.cpu_count() or 1)

    def prepare() -> None:
        die_with_parent(launcher_pid)
        for group in (leaf, freezer):
            if group is not None:
                group.join()
        processes.end_first()
        resource.setrlimit(resource.RLIMIT_CPU, (most_s, most_s))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.scratch_bytes, limits.scratch_bytes))
        if most_tasks is not None:
            resource.setrlimit(resource.RLIMIT_NPROC, (most_tasks, most_tasks))

    return prepare


def _most_tasks(limits: Limits, leaf: Leaf | None) -> int | None:
    """Return how many tasks the user of this process may have, those of a sandbox among them; None
    where a cgroup counts the sandbox's alone.

    The kernel counts all that the user has on this host, other judges' as well, so these come on
    top, and what more of them may start later. How many the sandbox has is watched.
    """
    if leaf is not None or os.getuid() == 0:  # root has no such limit
        return None
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    wanted = NEIGHBOURS * limits.processes + processes.tasks_of_user(os.getuid())
    return wanted if most == resource.RLIM_INFINITY else min(wanted, most)
