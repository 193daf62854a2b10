"""Makes one rank's inputs and true answers, and compares what a submission left.

Forked from the judge, outside every sandbox, it shares with a submission nothing but the slab. The
W of them run the reference among themselves in float64 to know the answers before anybody is asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
import torch.distributed as dist

from evaluator.buffers import cuda_kernel, gpu_sealing, memory, sealing
from evaluator.buffers.control import Control
from evaluator.buffers.memory import Memory
from evaluator.buffers.slab import Cursor, Plan, Region, lay_out
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Job, Profile
from evaluator.messages.report import OutputCheck, Verdict
from evaluator.oracle.call_cache import Call, CallCache, as_bytes
from evaluator.oracle.canaries import Canaries
from evaluator.oracle.comparer import Comparer
from problems import ProblemModule
from problems.context import RankContext
from problems.running.calls import Outputs, keys_of_ties, mutated, true_answer
from problems.running.calls import call as answers
from problems.trials import TrialSpec

LARGE_BYTES = 4 << 30
CPU = torch.device("cpu")


@dataclass(kw_only=True)
class OracleRank:
    """Holds one rank of a run; its public methods are the commands of the oracle group."""

    job: Job
    rank: int
    module: ProblemModule
    secret: bytes
    canary_secret: bytes
    controls: dict[str, Control]
    device: torch.device = CPU
    groups: Mapping[str, dist.ProcessGroup] = field(default_factory=dict)
    caches: dict[str, CallCache] = field(default_factory=dict)
    memories: list[Memory] = field(default_factory=list)
    slabs: dict[str, torch.Tensor] = field(default_factory=dict)
    output_dtypes: tuple[torch.dtype, ...] = ()
    cleared: list[Call] = field(default_factory=list)
    snapshots: list[torch.Tensor] = field(default_factory=list)
    sealed: dict[int, list[tuple[Region, torch.Tensor]]] = field(default_factory=dict)
    waiting: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.uint8))

    @cached_property
    def canaries(self) -> Canaries:
        """Return this rank's secret patterns."""
        return Canaries(secret=self.canary_secret, rank=self.rank)

    @cached_property
    def comparer(self) -> Comparer:
        """Return what judges this rank's answers."""
        return Comparer(module=self.module, job=self.job, rank=self.rank, canaries=self.canaries)

    def prepare(
        self, key: str, specs: list[TrialSpec], check_reference: bool, kept: int, start: int
    ) -> tuple[Plan, int]:
        """Make the calls of a key, behind so many of those that it has, from where slot `start` of
        the timed calls lies; return the plan and the bytes needed. Collective."""
        calls = self.caches[key].calls[:kept] if kept else []
        cache = CallCache(calls=calls + [self._make_call(spec, check_reference) for spec in specs])
        cursor = Cursor(end=self.caches["timed"].starts[start] if start else 0)
        for call in cache.calls:
            cache.starts.append(cursor.end)
            shapes = [tuple(out.shape) for out in call.truth[: len(self.output_dtypes)]]
            outputs = list(zip(shapes, self.output_dtypes, strict=True))
            call.layout = lay_out(cursor, call.inputs, outputs, self.module.problem.mutates)
        cache.nbytes, cache.guards = cursor.close(), cursor.guards
        self.caches[key] = cache
        slots = [call.layout.node() for call in cache.calls if call.layout is not None]
        return {"slots": slots, "gate": self._gate}, cache.nbytes

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
        for kept in (self.caches, self.slabs, self.snapshots, self.sealed):
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
            self._write(slab, call)

    def release(self, side: str, indices: tuple[int, ...], sequence: int, skew_s: float) -> None:
        """Write the inputs of the cleared calls, and poison where their outputs belong, and say go
        at once: they are secret until they are needed."""
        for index in indices:
            self._write(self.slabs[side], self.cleared[index])
        self._synchronize()
        if skew_s:
            time.sleep(skew_s)
        self.controls[side].release(sequence)

    def seal(self, side: str, keys: Mapping[int, int]) -> None:
        """Seal the inputs of cleared calls by their keys, by slot, in host memory; write poison
        where their outputs belong."""
        own = [
            (index, key, place, as_bytes(tensor))
            for index, key in keys.items()
            for _, place, tensor in self.cleared[index].placed()
        ]
        nbytes, end = sum(place.nbytes for _, _, place, _ in own), 0
        if len(self.waiting) < nbytes:  # a copy engine reads it
            is_pinned = self.device.type == "cuda"
            self.waiting = torch.empty(nbytes, dtype=torch.uint8, pin_memory=is_pinned)
        self.sealed = {index: [] for index in keys}
        for index in keys:
            self._poison(self.slabs[side], self.cleared[index])
        for index, key, place, plain in own:
            begin, end = end, end + place.nbytes
            sealing.seal(self.waiting[begin:end], plain, place.offset, key)
            self.sealed[index].append((place, self.waiting[begin:end]))
        self._synchronize()

    def put(self, side: str, indices: tuple[int, ...]) -> int:
        """Write the sealed inputs of these calls; return how many bytes. A copy engine does it: a
        kernel of this process, or a copy on one GPU, would leave the ranks' caches cold."""
        placed = [own for index in indices for own in self.sealed.pop(index)]
        for place, sealed in placed:
            place.region(self.slabs[side]).copy_(sealed, non_blocking=True)
        self._synchronize()
        return sum(len(sealed) for _, sealed in placed)

    def _write(self, slab: torch.Tensor, call: Call) -> None:
        """Write poison where the outputs of a call belong, and its inputs."""
        self._poison(slab, call)
        for _, place, tensor in call.placed():
            place.region(slab).copy_(as_bytes(tensor))

    def _poison(self, slab: torch.Tensor, call: Call) -> None:
        for place in call.outputs:
            self.canaries.fill(place.region(slab), place.dtype)

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def commitments(self, key: str, calls: Sequence[tuple[tuple[int, ...], int]]) -> list[int]:
        """Return what the snapshot commits to, by the slots and the key of each launch."""
        cache, (snapshot,) = self.caches[key], self.snapshots
        launches = [
            ([r for index in own for r in cache.calls[index].committed], secret)
            for own, secret in calls
        ]
        if self._gate:
            return gpu_sealing.commitments(self._gate, snapshot, launches)
        return [sealing.commitment(snapshot, ranges, secret) for ranges, secret in launches]

    def snapshot(self, key: str, side: str, called: tuple[int, ...]) -> None:
        """Copy what these calls may have written, with the guard bands around."""
        cache = self.caches[key]
        if not self.snapshots or len(self.snapshots[0]) < cache.nbytes:
            self.snapshots[:] = [torch.empty(cache.nbytes, dtype=torch.uint8, device=self.device)]
        for start, end in cache.ranges(called):
            self.snapshots[0][start:end] = self.slabs[side][start:end]

    def check(self, key: str, called: tuple[int, ...]) -> list[list[OutputCheck]]:
        """Judge the snapshot of these calls; return per call one check per output."""
        cache, (snapshot,) = self.caches[key], self.snapshots
        if any(self._is_broken(snapshot, *band) for band in cache.bands(called)):
            return [[self.comparer.fault("guard band", Verdict.PROTOCOL_VIOLATION)]]
        return [self.comparer.check_call(cache.calls[index], snapshot) for index in called]

    def _is_broken(self, snapshot: torch.Tensor, start: int, end: int, skipped: int) -> bool:
        """Return True if a guard band differs, from `skipped` bytes behind its first on."""
        return not torch.equal(snapshot[start:end], self._guard[skipped : skipped + end - start])

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
        exact: Outputs = ()
        settles = module.problem.settles(job.profile)
        keys = keys_of_ties(module, inputs, self.groups) if settles else ()
        if check_reference or is_upstream:
            own = self._here(answers(module.reference, module.problem, inputs, self.groups))
            count = len(own) - len(mutated(module.problem, inputs))
            self.output_dtypes = tuple(out.dtype for out in own[:count])
            if is_upstream:
                truth, exact = own, truth
            self._check_reference(self.comparer.settled(own, truth, keys), truth)
        return Call(inputs=inputs, names=names, truth=truth, keys=keys, exact=exact)

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
    def _gate(self) -> str:
        """Return what ranks run around a gated call: PTX, or nothing on a processor."""
        on_gpu = self.device.type == "cuda"
        return cuda_kernel.compiled(sealing.SOURCE, self.device) if on_gpu else ""

    @cached_property
    def _guard(self) -> torch.Tensor:
        return self.canaries.guard(self.device)
