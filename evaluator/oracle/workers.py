"""Forks the oracle's workers, one a rank, and speaks with all of them at once."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, TypeVar, TypeVarTuple

import torch

from evaluator.host.host import Host
from evaluator.host.leftovers import own_folder, remove_folder
from evaluator.host.load import ANSWER_S, ANSWERS_S
from evaluator.host.parent_death import die_with_parent
from evaluator.messages.faults import EvaluatorError, GpuFull
from evaluator.messages.job import Device
from evaluator.oracle.rank import OracleRank
from evaluator.oracle.worker_process import Assignment, Order, WorkerSetup, serve

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class OracleWorkers:
    """Holds W trusted processes. `is_idle` says that all have answered what they were last told;
    `spent_s` is how many seconds the judge waited for answers in a run, by command; `share` which
    part of its limits a run may take.

    Whatever speaks with them raises EvaluatorError where a worker fails, dies or gives no answer,
    and GpuFull where it finds too little memory.
    """

    def __init__(self, world_size: int, device: Device, host: Host) -> None:
        self.pipes: list[Connection] = []
        self.is_idle = True
        self.spent_s: defaultdict[str, float] = defaultdict(float)
        self.share = 1.0
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
        for rank, message in enumerate(messages):
            with self.reaching(rank, "a command"):
                self.pipes[rank].send(message)

    def answers(self, name: str) -> list[Any]:
        """Return what they answer to the command of that name, by rank."""
        answers, began = [], time.monotonic()
        left_s = self.share * ANSWERS_S - sum(self.spent_s.values())
        deadline = began + min(self.share * ANSWER_S, max(0.0, left_s))
        for rank, pipe in enumerate(self.pipes):
            with self.reaching(rank, name):
                if not pipe.poll(max(0.0, deadline - time.monotonic())):
                    raise EvaluatorError(f"the judge's rank {rank} gave no answer to {name}")
                status, value = pipe.recv()
            if status == "full":
                raise GpuFull(f"the judge's rank {rank} has too little memory: {value}")
            if status != "ok":
                raise EvaluatorError(f"the judge's rank {rank} failed in {name}: {value}")
            answers.append(value)
        self.is_idle = True
        self.spent_s[name] += time.monotonic() - began
        return answers

    @contextlib.contextmanager
    def reaching(self, rank: int, name: str) -> Iterator[None]:
        """Raise EvaluatorError where the worker of a rank turns out to be gone in the block."""
        try:
            yield
        except (EOFError, OSError):
            raise EvaluatorError(f"the judge's rank {rank} died during {name}") from None

    def close(self) -> None:
        """End the workers and remove their folder."""
        for pipe in self.pipes:
            pipe.close()
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        remove_folder(self._folder)

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
