"""Run tasks on W processes joined by gloo on this machine, for the screen and the tests.

They are forked from one server process that has imported torch once, and stay alive between calls.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch

from problems.running.mesh import join_world

P = ParamSpec("P")
T = TypeVar("T")


class RankFailure(RuntimeError):
    """Raised where a rank raised, died or did not answer; the text is its traceback."""


class RankPool:
    """Keep ranks; use it as a context manager, or call `close`. A failed call ends the processes,
    the next one starts new ones. With `device` cuda every rank has a GPU, and NCCL joins them, or
    all of them share the first one, and gloo does."""

    def __init__(
        self,
        world_size: int,
        *,
        timeout_s: float = 60.0,
        device: str = "cpu",
        is_shared: bool = False,
    ) -> None:
        self.world_size, self.device, self._is_shared = world_size, device, is_shared
        self._timeout_s = timeout_s
        self._members: list[tuple[multiprocessing.process.BaseProcess, Connection]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def run(
        self, task: Callable[Concatenate[int, int, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """Call `task(rank, world_size, ...)` on every rank at once and return its results by rank.

        The task and its arguments are pickled: give functions of a module. Raises RankFailure.
        """
        if not self._members:
            self._start()
        for _, pipe in self._members:
            pipe.send((task, args, kwargs))
        results: dict[int, T] = {}
        pipes = {pipe: rank for rank, (_, pipe) in enumerate(self._members)}
        while pipes:
            ready = wait(list(pipes), self._timeout_s)
            if not ready:
                self.close()
                raise RankFailure(f"ranks {sorted(pipes.values())} were silent too long")
            for pipe in [pipe for pipe in pipes if pipe in ready]:
                rank = pipes.pop(pipe)
                results[rank] = self._receive(rank, pipe)
        return [results[rank] for rank in range(self.world_size)]

    def close(self) -> None:
        for process, pipe in self._members:
            pipe.close()
            process.terminate()
            process.join()
        self._members = []
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> RankPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self) -> None:
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["torch", "torch.distributed"])
        self._folder = tempfile.TemporaryDirectory(prefix="gloo-")
        meeting = os.path.join(self._folder.name, "store")
        for rank in range(self.world_size):
            ours, theirs = server.Pipe()
            place = (self.device, meeting, rank, self.world_size, self._timeout_s)
            join = partial(join_world, *place, is_shared=self._is_shared)
            process = server.Process(
                target=_serve, args=(theirs, rank, self.world_size, join), daemon=True
            )
            process.start()
            theirs.close()
            self._members.append((process, ours))

    def _receive(self, rank: int, pipe: Connection) -> Any:
        try:
            ok, answer = pipe.recv()
        except (EOFError, ConnectionResetError):
            ok, answer = False, "it died"
        if not ok:
            self.close()
            raise RankFailure(f"rank {rank}: {answer}")
        return answer


def _serve(pipe: Connection, rank: int, world_size: int, join: Callable[[], object]) -> None:
    torch.set_num_threads(1)
    # torch 2.13 renames collectives that 2.11, on today's GPU hosts, knows by the old names only.
    warnings.filterwarnings("ignore", category=FutureWarning, module="torch.distributed")
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    join()
    while True:
        try:
            task, args, kwargs = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        try:
            pipe.send((True, task(rank, world_size, *args, **kwargs)))
        except Exception:  # noqa: BLE001 - a process boundary: the caller raises it
            pipe.send((False, traceback.format_exc()))
