"""The judge's ranks as one: forks them, gives all the same command, collects every answer."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import torch

import problems
from evaluator.control import Control
from evaluator.host import Host
from evaluator.job import Device, Job
from evaluator.judge_rank import JudgeRank
from evaluator.leftovers import own_folder
from evaluator.lifeline import die_with_parent
from evaluator.ranks import GpuFull
from evaluator.report import EvaluatorError, OutputCheck
from evaluator.spawn import RankSetup
from evaluator.timing import PACES
from problems.mesh import join_world, mesh_groups
from problems.trials import TrialSpec, correctness_trials, timed_trial

ANSWER_TIMEOUT_S = 300.0
GROWTH = 1.25
AHEAD_BYTES = 4 << 30
SANDBOX_STORE = "/tmp/rendezvous"


class Panel:
    """W trusted processes, one a rank. Every method is a command that all of them carry out."""

    def __init__(
        self, job: Job, secret: bytes, controls: Mapping[str, Sequence[int]], host: Host
    ) -> None:
        """`controls` are the descriptors of each side's control pages."""
        name = _find(job)
        self.module = problems.load(name)
        self.job, self.name = job, name
        self._secret, self._made = secret, 0
        self._chooser = random.SystemRandom()
        self._folder = own_folder()
        self._sides = list(controls)
        self._plans: dict[str, list[Any]] = {}
        self._nbytes: dict[str, int] = {}
        self._size = 0
        self._burst_calls = 1
        self._pipes: list[Connection] = []
        self._pids: list[int] = []
        self._host = host
        for rank in range(job.world_size):
            self._fork(rank, {side: own[rank] for side, own in controls.items()})

    @property
    def mutates(self) -> bool:
        return bool(self.module.problem.mutates)

    @property
    def burst_calls(self) -> int:
        return self._burst_calls

    @property
    def trials(self) -> list[tuple[str, TrialSpec]]:
        return [(f"trial {spec.trial}", spec) for spec in self._specs]

    def setup(self, source: str | None, threads: int) -> RankSetup:
        """What a side's ranks are told; `source` None means the reference."""
        return self._setup(source, threads, SANDBOX_STORE)

    def prepare_all(self) -> None:
        """Make the trials, as many as fit, and a first burst, so that the slabs can be sized."""
        problem, job = self.module.problem, self.job
        self._specs = correctness_trials(problem, job.size, job.profile, job.trials, self._secret)
        for key, _ in self.trials:
            if sum(self._nbytes.values()) < AHEAD_BYTES:
                self.make_ready(key)
        self._burst_calls = PACES[job.device].burst_calls(self._nbytes[self.trials[0][0]])
        self.refresh()
        self._size = int(max(self._nbytes.values()) * GROWTH)

    def make_ready(self, key: str) -> None:
        """Make a trial that is not there yet."""
        if key not in self._plans:
            self._prepare(key, [dict(self.trials)[key]], check_reference=True)

    def drop(self, key: str) -> None:
        self._all("drop", key)

    def make_slabs(self) -> dict[str, list[tuple[int, int]]]:
        """A slab for each side and rank: its descriptor, which is the caller's, and its bytes."""
        slabs: dict[str, list[tuple[int, int]]] = {side: [] for side in self._sides}
        answers = self._all("attach", self._size)
        for pipe, made in zip(self._pipes, answers, strict=True):
            for side, (_, nbytes) in zip(self._sides, made, strict=True):
                slabs[side].append((recv_handle(pipe), nbytes))
        return slabs

    def plans(self, key: str) -> list[Any]:
        return self._plans[key]

    def refresh(self) -> bool:
        """Fresh inputs and answers for the timed burst; True where the layout changed."""
        before = self._plans.get("timed")
        first = self.job.trials + self._made
        self._made += self._burst_calls
        specs = [
            timed_trial(self.module.problem, self.job.size, first + offset)
            for offset in range(self._burst_calls)
        ]
        self._prepare("timed", specs, check_reference=False)
        return before is not None and before != self._plans["timed"]

    def shorten_burst(self, calls: int) -> None:
        """From the next refresh on, at most so many calls."""
        self._burst_calls = min(self._burst_calls, calls)

    def shuffled_burst(self) -> tuple[int, ...]:
        return tuple(self._chooser.sample(range(self._burst_calls), self._burst_calls))

    def clear(self, key: str, side: str) -> None:
        self._all("clear", key, side)

    def is_calm(self) -> bool:
        """Whether the GPUs are idle, at last after some waiting. A processor always is."""
        return self.job.device is Device.CPU or all(self._all("is_calm"))

    def release(
        self, side: str, indices: tuple[int, ...], sequence: int, max_skew_s: float = 0.0
    ) -> None:
        """Inputs and go for every rank."""
        for pipe in self._pipes:
            skew_s = self._chooser.uniform(0, max_skew_s)
            pipe.send(("release", (side, indices, sequence, skew_s)))
        self._answers("release")

    def watch_for_end(self, side: str, sequence: int) -> None:
        """Have the judge's ranks wait, spinning, for the end of a burst; `ended` must follow."""
        for pipe in self._pipes:
            pipe.send(("finish", (side, sequence)))

    def ended(self) -> tuple[int, list[int]]:
        """When the burst's last GPU was done, and the ranks that ticked before theirs was."""
        answers = self._answers("finish")
        early = [rank for rank, (_, left) in enumerate(answers) if left]
        return max(when for when, _ in answers), early

    def check(self, key: str, side: str, called: tuple[int, ...] = (0,)) -> list[OutputCheck]:
        """Every output of every rank and of the calls that were made, compared."""
        answers = self._all("check", key, side, called)
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
        if self._size and self._nbytes[key] > self._size:
            raise EvaluatorError(f"the inputs of {key} outgrew their slab")

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
            if status == "full":
                raise GpuFull(f"the judge's rank {rank} has too little memory: {value}")
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
            device=self.job.device,
            cores=self._host.cores.helping if self._host.cores else (),
        )

    def _fork(self, rank: int, controls: dict[str, int]) -> None:
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
            os.environ.update(self._host.settings)
            if self._host.cores:
                os.sched_setaffinity(0, {self._host.cores.watching[rank]})
            own = JudgeRank(
                job=self.job,
                rank=rank,
                module=self.module,
                secret=self._secret,
                controls={side: Control(fd) for side, fd in controls.items()},
            )
            _serve(own, self._setup(None, 1, f"{self._folder}/rendezvous"), theirs)
            status = 0
        finally:
            os._exit(status)


def _serve(rank: JudgeRank, setup: RankSetup, commands: Connection) -> None:
    """Obey the judge until its end of the pipe closes; answers ("ok", value) or ("error", text)."""
    torch.set_num_threads(1)
    rank.device = join_world(setup.device, setup.store, rank.rank, setup.world_size)
    rank.groups = mesh_groups(
        rank.module.problem.mesh,
        rank.module.dims(setup.m, setup.n, setup.world_size),
        rank.rank,
        setup.world_size,
    )
    while True:
        try:
            name, arguments = commands.recv()
        except EOFError:
            return
        try:
            answer = getattr(rank, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - a process boundary: the judge raises it again
            is_full = isinstance(error, torch.OutOfMemoryError)
            commands.send(("full" if is_full else "error", f"{type(error).__name__}: {error}"))
            continue
        commands.send(("ok", answer))
        if name == "attach":
            _hand_over(commands, [fd for fd, _ in answer])


def _hand_over(pipe: Connection, fds: Sequence[int]) -> None:
    """Send descriptors behind a message, and close them here."""
    for fd in fds:
        send_handle(pipe, fd, 0)
        os.close(fd)


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
