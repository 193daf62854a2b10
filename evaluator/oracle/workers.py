"""Forks the oracle's workers, one a rank, and speaks with all of them at once."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, TypeVar, TypeVarTuple

import torch

from evaluator.host.host import Host
from evaluator.host.leftovers import own_folder
from evaluator.host.parent_death import die_with_parent
from evaluator.messages.faults import EvaluatorError, GpuFull
from evaluator.messages.job import Device
from evaluator.oracle.rank import OracleRank
from evaluator.oracle.worker_process import Assignment, Order, WorkerSetup, serve

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ANSWER_TIMEOUT_S = 300.0


class OracleWorkers:
    """Holds W trusted processes. `is_idle` says that all have answered what they were last told;
    `spent_s` is how many seconds the judge waited for answers, by command.

    Whatever reads answers raises EvaluatorError where a worker fails, dies or gives none, and
    GpuFull where it finds too little memory.
    """

    def __init__(self, world_size: int, device: Device, host: Host) -> None:
        self.pipes: list[Connection] = []
        self.is_idle = True
        self.spent_s: defaultdict[str, float] = defaultdict(float)
        self._pids: list[int] = []
        self._host = host
        self._folder = own_folder()
        store = f"{self._folder}/rendezvous"
        first = WorkerSetup(
            rank=0,
            world_size=world_size,
            device=device,
            store=store,
            cores=host.cores,
            placement=host.placement,
        )
        for rank in range(world_size):
            self._fork(replace(first, rank=rank))

    def all(self, command: Callable[[OracleRank, *Ts], T], *arguments: *Ts) -> list[T]:
        """Have every worker carry out a command; return their answers by rank."""
        self.tell(command, *arguments)
        return self.answers(command.__name__)

    def tell(self, command: Callable[[OracleRank, *Ts], object], *arguments: *Ts) -> None:
        """Give every worker a command; `answers` must follow."""
        self.send(Order(command, arguments) for _ in self.pipes)

    def send(self, messages: Iterable[Assignment | Order]) -> None:
        """Send one to each rank; none is idle until all have answered."""
        self.is_idle = False
        for pipe, message in zip(self.pipes, messages, strict=True):
            pipe.send(message)

    def answers(self, name: str) -> list[Any]:
        """Return what they answer to the command of that name, by rank."""
        answers, began = [], time.monotonic()
        for rank, pipe in enumerate(self.pipes):
            if not pipe.poll(ANSWER_TIMEOUT_S):
                raise EvaluatorError(f"the judge's rank {rank} gave no answer to {name}")
            try:
                status, value = pipe.recv()
            except EOFError:
                raise EvaluatorError(f"the judge's rank {rank} died during {name}") from None
            if status == "full":
                raise GpuFull(f"the judge's rank {rank} has too little memory: {value}")
            if status != "ok":
                raise EvaluatorError(f"the judge's rank {rank} failed in {name}: {value}")
            answers.append(value)
        self.is_idle = True
        self.spent_s[name] += time.monotonic() - began
        return answers

    def close(self) -> None:
        """End the workers and remove their folder."""
        for pipe in self.pipes:
            pipe.close()
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _fork(self, setup: WorkerSetup) -> None:
        ours, theirs = multiprocessing.Pipe()
        judge_pid = os.getpid()
        pid = os.fork()
        if pid:
            theirs.close()
            self.pipes.append(ours)
            self._pids.append(pid)
            return
        status = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            die_with_parent(judge_pid)
            for pipe in [ours, *self.pipes]:
                pipe.close()
            os.environ.update(self._host.settings)
            serve(setup, theirs)
            status = 0
        finally:
            os._exit(status)


torch.set_num_threads(1)
