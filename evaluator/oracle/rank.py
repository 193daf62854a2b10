"""Makes one rank's inputs and true answers, and compares what a submission left.

Forked from the judge, outside every sandbox, it shares with a submission nothing but the slab. The
W of them run the reference among themselves in float64 to know the answers before anybody is asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import torch
import torch.distributed as dist

from evaluator.buffers import memory
from evaluator.buffers.control import Control
from evaluator.buffers.input_locks import Chain, InputLock, kernel_for, make_lock
from evaluator.buffers.memory import Memory
from evaluator.buffers.slab import Cursor, Plan, lay_out
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Job, Placement, Profile
from evaluator.messages.report import OutputCheck, Verdict
from evaluator.oracle.call_cache import Call, CallCache, as_bytes, first_differences
from evaluator.oracle.canaries import Canaries, watched_bytes
from evaluator.oracle.comparer import Comparer
from evaluator.oracle.gpu_idle import is_gpu_idle
from problems import ProblemModule
from problems.calls import Outputs, keys_of_ties, mutated, true_answer
from problems.calls import call as answers
from problems.context import RankContext
from problems.guards import chained_outputs
from problems.trials import TrialSpec

LARGE_BYTES = 4 << 30
FLUSH_BYTES = 256 << 20  # several times the cache of any GPU
CPU = torch.device("cpu")


@dataclass(kw_only=True)
class OracleRank:
    """Holds one rank of a run; its public methods are the commands of the oracle group."""

    job: Job
    rank: int
    module: ProblemModule
    secret: bytes
    controls: dict[str, Control]
    device: torch.device = CPU
    groups: Mapping[str, dist.ProcessGroup] = field(default_factory=dict)
    caches: dict[str, CallCache] = field(default_factory=dict)
    memories: list[Memory] = field(default_factory=list)
    slabs: dict[str, torch.Tensor] = field(default_factory=dict)
    output_dtypes: tuple[torch.dtype, ...] = ()
    cleared: list[Call] = field(default_factory=list)
    snapshots: list[torch.Tensor] = field(default_factory=list)
    watched: torch.Tensor | None = None
    seen: torch.Tensor | None = None
    locks: dict[int, InputLock] = field(default_factory=dict)

    @cached_property
    def canaries(self) -> Canaries:
        """Return this rank's secret patterns."""
        return Canaries(secret=self.secret, rank=self.rank)

    @cached_property
    def comparer(self) -> Comparer:
        """Return what judges this rank's answers."""
        return Comparer(module=self.module, job=self.job, rank=self.rank, canaries=self.canaries)

    def prepare(
        self, key: str, specs: list[TrialSpec], check_reference: bool, kept: int = 0
    ) -> tuple[Plan, int]:
        """Make the calls of a key, behind so many of those that it has; return the plan and the
        bytes needed. Collective."""
        calls = self.caches[key].calls[:kept] if kept else []
        cache = CallCache(calls=calls + [self._make_call(spec, check_reference) for spec in specs])
        cursor = Cursor()
        for call in cache.calls:
            cache.starts.append(cursor.end)
            shapes = [tuple(out.shape) for out in call.truth[: len(self.output_dtypes)]]
            outputs = list(zip(shapes, self.output_dtypes, strict=True))
            call.layout = lay_out(cursor, call.inputs, outputs, self.module.problem.mutates)
        cache.nbytes, cache.guards = cursor.close(), cursor.guards
        self.caches[key] = cache
        slots = [call.layout.node() for call in cache.calls if call.layout is not None]
        return {"slots": slots}, cache.nbytes

    def attach(self, nbytes: int, sides: Sequence[str]) -> list[tuple[int, int]]:
        """Make a slab for each of these sides; return their descriptors and sizes in bytes."""
        if nbytes > LARGE_BYTES and self.device.type == "cuda":
            torch.cuda.empty_cache()  # an oracle's working memory is too much to keep
        made = []
        for side in sides:
            fd, slab = memory.create(self.device, nbytes)
            self.memories.append(slab)
            self.slabs[side] = slab.everything
            if self.device.type == "cuda":
                slab.everything.zero_()  # this process may have held answers there
            made.append((fd, slab.nbytes))
        return made

    def end(self) -> None:
        """Forget the run, and give its memory back."""
        self.cleared = []
        self.watched = self.seen = None
        for kept in (self.caches, self.slabs, self.snapshots, self.locks):
            kept.clear()
        for slab in self.memories:
            memory.close(slab)
        self.memories.clear()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def drop(self, key: str) -> None:
        """Forget calls that have been judged."""
        self.cleared = []
        del self.caches[key]

    def clear(self, key: str, side: str, spare: int = 0) -> None:
        """Write guard bands around the calls of a key, whose inputs are to be released, and those
        of the first `spare` calls at once."""
        cache, slab = self.caches[key], self.slabs[side]
        if side not in cache.filled_sides:
            cache.filled_sides.add(side)
            for start, end in cache.guards:
                slab[start:end] = self._guard[: end - start]
        self.cleared = cache.calls
        for call in cache.calls[:spare]:
            self._write(slab, call, None)

    def chain_inputs(self, key: str, indices: tuple[int, ...], locked: bool) -> Chain:
        """Have each of these calls open with what the one before tells a rank that it cannot know
        alone, on both sides, from now on.

        No other call is locked. Returns what ranks have to be told.
        """
        self.locks.clear()
        chained = chained_outputs(self.module, self.job.dtype) if locked else ()
        calls = self.caches[key].calls
        for before, after in pairwise(indices if chained else ()):
            answers = calls[before].named_answers(self._mutates, chained)
            if lock := make_lock(calls[after].span, answers, self.comparer.tolerance):
                self.locks[after] = lock
        nodes = [self.locks[index].node if index in self.locks else None for index in indices]
        return {"calls": indices, "locks": nodes, "kernel": kernel_for(self.device)}

    def release(
        self, side: str, indices: tuple[int, ...], sequence: int, skew_s: float, locked: bool
    ) -> None:
        """Write the inputs of the cleared calls, and poison where their outputs belong, and say go
        at once: they are secret until they are needed."""
        slab = self.slabs[side]
        for index in indices:
            self._write(slab, self.cleared[index], self.locks.get(index) if locked else None)
        if self.device.type == "cuda":
            answers = [self.cleared[index].answers(self._mutates) for index in indices]
            places = [place for answer in answers for place, _ in answer]
            self.watched, self.seen = watched_bytes(places, self.device), None
            if self.job.placement is Placement.FULL:
                self._scratch.zero_()  # pushes the inputs out of the GPU's cache
            torch.cuda.synchronize()
        if skew_s:
            time.sleep(skew_s)
        self.controls[side].release(sequence)

    def _write(self, slab: torch.Tensor, call: Call, lock: InputLock | None) -> None:
        """Write poison where the outputs of a call belong, and its inputs."""
        for place in call.outputs:
            self.canaries.fill(place.region(slab), place.dtype)
        inputs = [(place.offset, as_bytes(tensor)) for _, place, tensor in call.placed()]
        if lock is not None:
            lock.write(slab, inputs)
            return
        for offset, value in inputs:
            slab[offset : offset + len(value)] = value

    def is_gpu_idle(self) -> bool:
        """Wait until nobody else computes on this GPU; False where somebody goes on and on."""
        return self.device.type != "cuda" or is_gpu_idle(self._scratch[:1])

    def finish(self, side: str, sequence: int) -> int:
        """Wait until the rank signals done, then look at the GPU itself; return when that was done,
        in nanoseconds.

        What some secret places hold then is kept for `snapshot`. A rank that signals while its GPU
        still works gains nothing: this look takes its turn after that work, or finds what is to be
        written yet.
        """
        while not self.controls[side].has_done(sequence):
            pass
        self.seen = self.slabs[side][self.watched]
        torch.cuda.synchronize()
        return time.perf_counter_ns()

    def snapshot(self, key: str, side: str, called: tuple[int, ...]) -> bool:
        """Copy what these calls may have written, with the guard bands around. Return whether any
        of the secret places has changed since `finish`."""
        cache = self.caches[key]
        if not self.snapshots or len(self.snapshots[0]) < cache.nbytes:
            self.snapshots[:] = [torch.empty(cache.nbytes, dtype=torch.uint8, device=self.device)]
        for start, end in cache.ranges(called):
            self.snapshots[0][start:end] = self.slabs[side][start:end]
        return self.seen is not None and not torch.equal(self.snapshots[0][self.watched], self.seen)

    def check(self, key: str, called: tuple[int, ...]) -> list[list[OutputCheck]]:
        """Judge the snapshot of these calls; return per call one check per output."""
        cache, (snapshot,) = self.caches[key], self.snapshots
        if any(self._is_broken(snapshot, *band) for band in cache.bands(called)):
            return [[self.comparer.fault("guard band", Verdict.PROTOCOL_VIOLATION)]]
        found: list[list[OutputCheck]] = []
        for index in called:
            own = self.comparer.check_call(cache.calls[index], snapshot, self.locks.get(index))
            found.append(own)
            if self.locks and any(check.verdict is not Verdict.OK for check in own):
                break  # nobody knows what the next call was given
        return found

    def _is_broken(self, snapshot: torch.Tensor, start: int, end: int, skipped: int) -> bool:
        """Return whether a guard band is, from `skipped` bytes behind its first on; what a lock
        that opened with another key left is none."""
        band, guard = snapshot[start:end], self._guard[skipped : skipped + end - start]
        if torch.equal(band, guard):
            return False
        offsets = first_differences(band, guard) + start
        return not any(lock.span.covers(offsets) for lock in self.locks.values())

    def _make_call(self, spec: TrialSpec, check_reference: bool) -> Call:
        module, job = self.module, self.job
        context = RankContext(
            rank=self.rank,
            world_size=job.world_size,
            number=module.problem.number,
            spec=spec,
            profile=job.profile,
            secret=self.secret,
            dtype=getattr(torch, job.dtype),
            device=self.device,
        )
        inputs = module.make_inputs(context, module.dims(spec.m, spec.n, job.world_size))
        named = true_answer(module, inputs, self.groups)
        names, truth = tuple(n for n, _ in named), self._here(t for _, t in named)
        is_upstream = job.profile is Profile.UPSTREAM
        settles = module.problem.settles(job.profile)
        keys = keys_of_ties(module, inputs, self.groups) if settles else ()
        if check_reference or is_upstream:
            own = self._here(answers(module.reference, module.problem, inputs, self.groups))
            count = len(own) - len(mutated(module.problem, inputs))
            self.output_dtypes = tuple(out.dtype for out in own[:count])
            if is_upstream:
                truth = own
            self._check_reference(self.comparer.settled(own, truth, keys), truth)
        return Call(inputs=inputs, names=names, truth=truth, keys=keys)

    def _here(self, answer: Iterable[torch.Tensor]) -> Outputs:
        """Move answers to this rank's device; a reference may leave its on the CPU."""
        return tuple(tensor.to(self.device) for tensor in answer)

    def _check_reference(
        self, own: tuple[torch.Tensor, ...], truth: tuple[torch.Tensor, ...]
    ) -> None:
        """Raise EvaluatorError unless the reference itself passes: then the fault is ours, whatever
        the kernel does."""
        for position, (got, expected) in enumerate(zip(own, truth, strict=True)):
            check = self.comparer.compare(f"answer {position}", got, expected)
            if check.verdict is not Verdict.OK:
                raise EvaluatorError(f"the reference fails its own oracle: {check}")

    @property
    def _mutates(self) -> tuple[str, ...]:
        return self.module.problem.mutates

    @cached_property
    def _scratch(self) -> torch.Tensor:
        return torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=self.device)

    @cached_property
    def _guard(self) -> torch.Tensor:
        return self.canaries.guard(self.device)
