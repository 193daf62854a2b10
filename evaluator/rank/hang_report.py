"""Prints the stacks of a rank and its last collectives when it is asked where it is.

Asked by a signal, because a rank that hangs inside a library runs no Python. Untrusted like all
that a rank prints.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from evaluator.messages.rank_setup import HANG_REPORT_SIGNAL

STACKS_S = 0.1  # in which the signal's handler has printed them


def prepare(wake_fd: int) -> None:
    """Answer the signal, and what is written to the other end of `wake_fd`, from now on.

    The stacks are printed by the signal's own handler, the collectives by a thread. No Python
    handler may follow the first: then a native call that waits would end with EINTR.
    """
    faulthandler.enable()
    faulthandler.register(HANG_REPORT_SIGNAL, all_threads=True)
    threading.Thread(target=_answer, args=[wake_fd], daemon=True, name="hang report").start()


def _answer(wake_fd: int) -> None:
    while os.read(wake_fd, 1):
        time.sleep(STACKS_S)
        for line in last_collectives():
            sys.stderr.write(f"{line}\n")


def last_collectives() -> Iterator[str]:
    """Yield one line a process group: the last collective that this rank has entered in it."""
    if not dist.is_initialized():
        return
    last: dict[str, dict[str, Any]] = {}
    for entry in _recorded():
        last[str(entry.get("process_group", ["?"])[0])] = entry
    for name, entry in last.items():
        operation = str(entry.get("profiling_name", "?")).rpartition(":")[2]
        seq, state = entry.get("collective_seq_id"), entry.get("state")
        yield f"last collective: {operation} seq={seq} group={name} state={state}"


def _recorded() -> list[dict[str, Any]]:
    """Return what torch's flight recorders hold; empty where this version has none."""
    c10d: Any = torch._C._distributed_c10d
    entries: list[dict[str, Any]] = []
    for name in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):
        dump = getattr(c10d, name, None)
        if dump is not None and not entries:
            entries = json.loads(dump()).get("entries", [])
    return entries
