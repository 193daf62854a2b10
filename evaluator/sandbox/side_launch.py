"""Starts the sandbox of one side, the submission's or the reference's, for a run that may come."""

from __future__ import annotations

import os
import socket

from evaluator.buffers.control import Control
from evaluator.buffers.control_page import CONTROL_BYTES, sealed_memfd
from evaluator.host.host import Host
from evaluator.messages.job import Job
from evaluator.sandbox import sandbox
from evaluator.sandbox.logs import LogCollector
from evaluator.sandbox.rank_group import RankGroup

# A module path and no import: nothing trusted loads the ranks' code.
LAUNCHER = "evaluator.rank.launcher"


def launch(side: str, job: Job, host: Host, *, import_early: bool, for_kernels: bool) -> RankGroup:
    """Start a side's sandbox; its ranks wait for `start`.

    They import torch at once, or with `import_early` false when they are started; and with
    `for_kernels` what kernels on GPUs mostly need.
    """
    ours, theirs = socket.socketpair()
    limits, logs = host.limits_of(job), LogCollector(job.limits.log_bytes)
    output = logs.open_pipe(-1)
    when = [*(["early"] if import_early else []), *(["for-kernels"] if for_kernels else [])]
    box = sandbox.launch(
        ["-m", LAUNCHER, str(theirs.fileno()), *when],
        limits=limits,
        settings=host.settings,
        fds=[theirs.fileno()],
        output_fd=output,
        devices=host.device_files,
    )
    theirs.close()
    os.close(output)
    fds = [sealed_memfd("control", CONTROL_BYTES) for _ in range(job.world_size)]
    return RankGroup(
        side=side,
        limits=limits,
        sandbox=box,
        channel=ours,
        logs=logs,
        slab_channels=[],
        control_fds=fds,
        controls=[Control(fd) for fd in fds],
    )
