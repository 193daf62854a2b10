"""Runs W oracle workers as one: gives all of them the same command, and collects every answer."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.reduction import recv_handle, send_handle

import problems
from evaluator.buffers.slab import Plan
from evaluator.host.host import Host
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Device, Job, Placement
from evaluator.messages.rank_setup import Task
from evaluator.messages.report import OutputCheck
from evaluator.oracle.rank import OracleRank
from evaluator.oracle.worker_process import Assignment, Order
from evaluator.oracle.workers import OracleWorkers
from evaluator.timing.pace import race_calls, round_calls, sealed_calls
from problems.trials import TrialSpec, correctness_trials, timed_trial, trials_before_timing

GROWTH = 1.4  # lengths are drawn again for each round
AHEAD_BYTES = 4 << 30
SPARE_CALLS = 2  # next to the timed ones, to warm up with


class OracleGroup:
    """Holds W trusted processes, one a rank, for one run after another.

    Every method between `begin` and `end` is a command that all of them carry out, and raises what
    the answers of OracleWorkers do.
    """

    def __init__(self, world_size: int, device: Device, host: Host) -> None:
        self._chooser = random.SystemRandom()
        self._workers = OracleWorkers(world_size, device, host)

    def begin(self, job: Job, secret: bytes, controls: Mapping[str, Sequence[int]]) -> None:
        """Begin a run. `controls` are the descriptors of the control pages, by side and rank."""
        self.name = _find(job)
        self.module = problems.load(self.name)
        self.job, self._secret, self._made = job, secret, 0
        self._sides = tuple(controls)
        self._plans: dict[str, list[Plan]] = {}
        self._nbytes: dict[str, int] = {}
        self._size = 0
        self._batch_calls = 1
        self._workers.spent_s.clear()
        self._workers.share = 1.0
        own_job = replace(job, source="")
        assigned = Assignment(
            job=own_job,
            problem=self.name,
            secret=secret,
            canary_secret=secrets.token_bytes(16),
            sides=self._sides,
        )
        self._workers.send(assigned for _ in self._workers.pipes)
        for rank, pipe in enumerate(self._workers.pipes):
            with self._workers.reaching(rank, "begin"):
                for own in controls.values():
                    send_handle(pipe, own[rank], 0)

    def end(self) -> None:
        """Forget the run."""
        self._workers.all(OracleRank.end)

    def hurry(self, share: float) -> None:
        """Give the rest of the run this share of its time."""
        self._workers.share = share

    @property
    def is_idle(self) -> bool:
        """Return whether the workers have done all that they were told."""
        return self._workers.is_idle

    @property
    def spent_s(self) -> dict[str, float]:
        """Return the seconds that the run waited for these workers, by command."""
        return {name: round(seconds, 4) for name, seconds in self._workers.spent_s.items()}

    @property
    def batch_calls(self) -> int:
        """Return how many timed calls lie in a slab at once."""
        return self._batch_calls

    @property
    def trials(self) -> list[tuple[str, TrialSpec]]:
        """Return the correctness trials, each with its key."""
        return [(f"trial {spec.trial}", spec) for spec in self._specs]

    def task(self, source: str | None) -> Task:
        """Return what a side's ranks are to call; `source` None means the reference."""
        size = self.module.problem.sizes[self.job.size]
        return Task(problem=self.name, m=size.m, n=size.n, entry=source)

    @property
    def warm_up_calls(self) -> tuple[int, ...]:
        """Return the slots of calls that nobody times or looks at."""
        return tuple(range(SPARE_CALLS))

    def prepare_all(self) -> None:
        """Make the trials, as many as fit, and a first batch, so that the slabs can be sized."""
        self._workers.answers("begin")
        problem, job = self.module.problem, self.job
        self._specs = correctness_trials(problem, job.size, job.profile, job.trials, self._secret)
        sharing = job.world_size if job.placement is Placement.SHARED else 1
        for key, _ in self.trials[: trials_before_timing(len(self.trials))]:
            if sharing * sum(self._nbytes.values()) < AHEAD_BYTES:
                self.make_ready(key)
        call_bytes = self._nbytes[self.trials[0][0]]
        self._batch_calls = round_calls(call_bytes)
        if job.placement is Placement.SHARED:
            self._batch_calls = race_calls(sharing * call_bytes)
        self.refresh()
        self._size = int(max(self._nbytes.values()) * GROWTH)

    def make_ready(self, key: str, *, where_timed: bool = False) -> None:
        """Make a trial that is not there yet, if asked where one of the timed calls lay."""
        if key not in self._plans:
            start = SPARE_CALLS + self._chooser.randrange(-(-self._batch_calls // 2))
            spec = dict(self.trials)[key]
            start = start if where_timed else 0
            self._prepare(key, [spec], check_reference=True, start=start)

    def drop(self, key: str) -> None:
        """Forget the calls of a key."""
        self._workers.all(OracleRank.drop, key)

    def make_slabs(self, sides: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """Make a slab for each of these sides and rank; return its descriptor and its bytes."""
        slabs: dict[str, list[tuple[int, int]]] = {side: [] for side in sides}
        answers = self._workers.all(OracleRank.attach, self._size, sides)
        for rank, (pipe, made) in enumerate(zip(self._workers.pipes, answers, strict=True)):
            with self._workers.reaching(rank, "attach"):
                for side, (_, nbytes) in zip(sides, made, strict=True):
                    slabs[side].append((recv_handle(pipe), nbytes))
        return slabs

    def plans(self, key: str) -> list[Plan]:
        """Return where the calls of a key lie in each rank's slab."""
        return self._plans[key]

    def refresh(self, calls: int = 0) -> None:
        """Make fresh inputs and answers for the timed calls, or for its last `calls` only."""
        spare = 0 if "timed" in self._plans else SPARE_CALLS
        slots = range(spare + self._batch_calls)[-calls:]
        first = self.job.trials + self._made
        self._made += len(slots)
        specs = [
            timed_trial(self.module.problem, self.job.size, first + number, self._secret)
            for number in range(len(slots))
        ]
        kept = SPARE_CALLS + self._batch_calls - len(specs)
        self._prepare("timed", specs, kept=kept, check_reference=False)

    def shuffled_batch(self) -> tuple[int, ...]:
        """Return the slots of timed calls in an order that nobody can foresee."""
        slots = range(SPARE_CALLS, SPARE_CALLS + self._batch_calls)
        return tuple(self._chooser.sample(slots, self._batch_calls))

    def parts(self, batch: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield a batch in parts whose inputs may be sealed at once."""
        count = sealed_calls(self._nbytes["timed"] // len(self._plans["timed"][0]["slots"]))
        for start in range(0, len(batch), count):
            yield batch[start : start + count]

    def clear(self, key: str, side: str) -> None:
        """Make each rank's slab ready for the calls of a key; those that warm up may be made."""
        self._workers.all(OracleRank.clear, key, side, SPARE_CALLS if key == "timed" else 0)

    def release(
        self, side: str, indices: tuple[int, ...], sequence: int, *, max_skew_s: float = 0.0
    ) -> None:
        """Write the inputs and say go to every rank, to each after at most `max_skew_s` more."""
        skews_s = (self._chooser.uniform(0, max_skew_s) for _ in self._workers.pipes)
        self._workers.send(
            Order(OracleRank.release, (side, indices, sequence, skew_s)) for skew_s in skews_s
        )
        self._workers.answers(OracleRank.release.__name__)

    def seal(self, side: str, keys: Sequence[Mapping[int, int]]) -> None:
        """Seal the inputs of calls by each rank's keys, by slot, for `put`."""
        self._workers.send(Order(OracleRank.seal, (side, own)) for own in keys)
        self._workers.answers(OracleRank.seal.__name__)

    def put(self, side: str, indices: tuple[int, ...]) -> list[int]:
        """Write the sealed inputs of these calls; return each rank's bytes."""
        return self._workers.all(OracleRank.put, side, indices)

    def commitments(
        self, key: str, calls: Sequence[Sequence[tuple[tuple[int, ...], int]]]
    ) -> list[list[int]]:
        """Return by rank what the snapshots commit to, given each rank's launches: their slots and
        the key."""
        self._workers.send(Order(OracleRank.commitments, (key, own)) for own in calls)
        return self._workers.answers(OracleRank.commitments.__name__)

    def snapshot(self, key: str, side: str, called: tuple[int, ...] = (0,)) -> None:
        """Copy what these calls may have written, for `check`."""
        self._workers.all(OracleRank.snapshot, key, side, called)

    def check(self, key: str, called: tuple[int, ...] = (0,)) -> list[OutputCheck]:
        """Compare every output of every rank and of the calls that were made, as the snapshot holds
        them."""
        return [check for calls in self.check_calls(key, called) for own in calls for check in own]

    def check_calls(self, key: str, called: tuple[int, ...]) -> list[list[list[OutputCheck]]]:
        """Return the same by rank and call; of a rank with a broken guard band only that."""
        return self._workers.all(OracleRank.check, key, called)

    def close(self) -> None:
        """End the workers and remove their folder."""
        self._workers.close()

    def _prepare(
        self,
        key: str,
        specs: list[TrialSpec],
        *,
        check_reference: bool,
        kept: int = 0,
        start: int = 0,
    ) -> None:
        answers = self._workers.all(OracleRank.prepare, key, specs, check_reference, kept, start)
        self._plans[key] = [plan for plan, _ in answers]
        self._nbytes[key] = max(nbytes for _, nbytes in answers)
        if self._size and self._nbytes[key] > self._size:
            raise EvaluatorError(f"the inputs of {key} outgrew their slab")


def _find(job: Job) -> str:
    """Return the problem's dotted name. Raises EvaluatorError where the job asks for nothing
    known."""
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
