"""The judge's ranks as one: forks them, gives all the same command, collects every answer."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch

import problems
from evaluator.control import RankFds, seal_at
from evaluator.job import Job
from evaluator.judge_rank import JudgeRank, serve
from evaluator.leftovers import own_folder
from evaluator.lifeline import die_with_parent
from evaluator.report import EvaluatorError, OutputCheck
from evaluator.spawn import RankSetup
from evaluator.timing import BURST_CALLS
from problems.trials import TrialSpec, correctness_trials, timed_trial

ANSWER_TIMEOUT_S = 300.0
GROWTH = 1.25
SANDBOX_STORE = "/tmp/rendezvous"


class Panel:
    """W trusted processes, one a rank. Every method is a command that all of them carry out."""

    def __init__(self, job: Job, secret: bytes, fds: dict[str, list[RankFds]]) -> None:
        name = _find(job)
        self.module = problems.load(name)
        self.job, self.name = job, name
        self._secret, self._rounds = secret, 0
        self._chooser = random.SystemRandom()
        self._folder = own_folder()
        self._plans: dict[str, list[Any]] = {}
        self._nbytes: dict[str, int] = {}
        self._size = 0
        self._pipes: list[Connection] = []
        self._pids: list[int] = []
        for rank in range(job.world_size):
            self._fork(rank, {side: own[rank] for side, own in fds.items()})

    @property
    def mutates(self) -> bool:
        return bool(self.module.problem.mutates)

    @property
    def burst_calls(self) -> int:
        return BURST_CALLS

    @property
    def trials(self) -> list[tuple[str, TrialSpec]]:
        return [(f"trial {spec.trial}", spec) for spec in self._specs]

    def setup(self, source: str | None, threads: int) -> RankSetup:
        """What a side's ranks are told; `source` None means the reference."""
        return self._setup(source, threads, SANDBOX_STORE)

    def prepare_all(self) -> None:
        """Make every trial and a first burst, so that the slabs can be sized and sealed."""
        problem, job = self.module.problem, self.job
        self._specs = correctness_trials(problem, job.size, job.profile, job.trials, self._secret)
        for key, spec in self.trials:
            self._prepare(key, [spec], check_reference=True)
        self.refresh()
        self._size = int(max(self._nbytes.values()) * GROWTH)

    def seal(self, fds: Sequence[RankFds]) -> None:
        for own in fds:
            seal_at(own.slab, self._size)

    def attach(self) -> None:
        self._all("attach", self._size)

    def plans(self, key: str) -> list[Any]:
        return self._plans[key]

    def refresh(self) -> bool:
        """Fresh inputs and answers for the timed burst; True where the layout changed."""
        before = self._plans.get("timed")
        first = self.job.trials + self._rounds * BURST_CALLS
        self._rounds += 1
        specs = [
            timed_trial(self.module.problem, self.job.size, first + offset)
            for offset in range(BURST_CALLS)
        ]
        self._prepare("timed", specs, check_reference=False)
        if self._size and self._nbytes["timed"] > self._size:
            raise EvaluatorError("a timed burst outgrew its slab")
        return before is not None and before != self._plans["timed"]

    def shuffled_burst(self) -> tuple[int, ...]:
        return tuple(self._chooser.sample(range(BURST_CALLS), BURST_CALLS))

    def clear(self, key: str, side: str) -> None:
        self._all("clear", key, side)

    def release(
        self, side: str, indices: tuple[int, ...], sequence: int, max_skew_s: float = 0.0
    ) -> int:
        """Inputs and go for every rank; when the first one went, in nanoseconds."""
        for pipe in self._pipes:
            skew_s = self._chooser.uniform(0, max_skew_s)
            pipe.send(("release", (side, indices, sequence, skew_s)))
        went_ns: list[int] = self._answers("release")
        return min(went_ns)

    def check(self, key: str, side: str) -> list[OutputCheck]:
        """Every output of every rank and call, compared."""
        answers = self._all("check", key, side)
        return [check for calls in answers for checks in calls for check in checks]

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _prepare(self, key: str, specs: list[TrialSpec], *, check_reference: bool) -> None:
        answers = self._all("prepare", key, specs, check_reference)
        self._plans[key] = [plan for plan, _ in answers]
        self._nbytes[key] = max(nbytes for _, nbytes in answers)

    def _all(self, name: str, *arguments: object) -> list[Any]:
        for pipe in self._pipes:
            pipe.send((name, arguments))
        return self._answers(name)

    def _answers(self, name: str) -> list[Any]:
        answers = []
        for rank, pipe in enumerate(self._pipes):
            if not pipe.poll(ANSWER_TIMEOUT_S):
                raise EvaluatorError(f"the judge's rank {rank} gave no answer to {name}")
            try:
                status, value = pipe.recv()
            except EOFError:
                raise EvaluatorError(f"the judge's rank {rank} died during {name}") from None
            if status != "ok":
                raise EvaluatorError(f"the judge's rank {rank} failed in {name}: {value}")
            answers.append(value)
        return answers

    def _setup(self, source: str | None, threads: int, store: str) -> RankSetup:
        size = self.module.problem.sizes[self.job.size]
        return RankSetup(
            problem=self.name,
            entry=source,
            world_size=self.job.world_size,
            m=size.m,
            n=size.n,
            threads=threads,
            store=store,
        )

    def _fork(self, rank: int, fds: dict[str, RankFds]) -> None:
        ours, theirs = multiprocessing.Pipe()
        judge_pid = os.getpid()
        pid = os.fork()
        if pid:
            theirs.close()
            self._pipes.append(ours)
            self._pids.append(pid)
            return
        status = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            die_with_parent(judge_pid)
            for pipe in [ours, *self._pipes]:
                pipe.close()
            own = JudgeRank(
                job=self.job, rank=rank, module=self.module, secret=self._secret, fds=fds
            )
            serve(own, self._setup(None, 1, f"{self._folder}/rendezvous"), theirs)
            status = 0
        finally:
            os._exit(status)


def _find(job: Job) -> str:
    """The problem's dotted name; raises EvaluatorError where the job asks for nothing known."""
    try:
        name = problems.find(job.problem)
    except problems.UnknownProblem as error:
        raise EvaluatorError(str(error)) from None
    problem = problems.load(name).problem
    if job.size not in problem.sizes:
        raise EvaluatorError(f"{name} has no size {job.size!r}, only {', '.join(problem.sizes)}")
    if job.world_size not in problem.world_sizes:
        known = ", ".join(map(str, problem.world_sizes))
        raise EvaluatorError(f"{name} is asked for world sizes {known}, not {job.world_size}")
    return name


torch.set_num_threads(1)
