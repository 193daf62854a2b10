"""The judge's own process for one rank: makes its inputs, its oracle answers, and its comparisons.

Forked from the judge, outside every sandbox; it shares with a submission nothing but the slab. The
W of them run the reference among themselves in float64 to know the answers before anybody is asked.
"""

from __future__ import annotations

import hashlib
import mmap
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist

from evaluator.control import Control, RankFds
from evaluator.job import Job, Profile
from evaluator.report import EvaluatorError, OutputCheck, Verdict
from evaluator.slab import Cursor, Place, SlotLayout, lay_out
from evaluator.spawn import RankSetup
from problems import ProblemModule
from problems.calls import Outputs, keys_of_ties, mutated, true_answer
from problems.calls import call as answers
from problems.comparison import compare
from problems.context import RankContext
from problems.mesh import mesh_groups
from problems.spec import Tolerance
from problems.trials import TrialSpec
from problems.values import tensors

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(kw_only=True)
class Call:
    """One call's private truth: its inputs, and the expected outputs and mutated arguments.

    `names` are the outputs' and then the mutated arguments', as `truth` holds them; `keys` is what
    the problem needs to know of answers that are as good as the truth.
    """

    inputs: dict[str, object]
    names: tuple[str, ...]
    truth: Outputs
    keys: Outputs
    layout: SlotLayout | None = None


@dataclass(kw_only=True)
class Bank:
    """Calls laid out together in a slab: one per correctness trial, or a burst's worth."""

    calls: list[Call]
    guards: list[tuple[int, int]] = field(default_factory=list)
    nbytes: int = 0
    filled_sides: set[str] = field(default_factory=set)


@dataclass(kw_only=True)
class JudgeRank:
    job: Job
    rank: int
    module: ProblemModule
    secret: bytes
    fds: dict[str, RankFds]
    groups: Mapping[str, dist.ProcessGroup] = field(default_factory=dict)
    banks: dict[str, Bank] = field(default_factory=dict)
    slabs: dict[str, torch.Tensor] = field(default_factory=dict)
    controls: dict[str, Control] = field(default_factory=dict)
    output_dtypes: tuple[torch.dtype, ...] = ()
    inputs_ready: list[list[tuple[torch.Tensor, torch.Tensor]]] = field(default_factory=list)

    @property
    def tolerance(self) -> Tolerance:
        return self.module.problem.tolerance(self.job.profile, self.job.dtype)

    def prepare(self, key: str, specs: list[TrialSpec], check_reference: bool) -> Any:
        """Make a bank's calls; returns (plan, bytes needed). Collective over the judge's ranks."""
        bank = Bank(calls=[self._make_call(spec, check_reference) for spec in specs])
        cursor = Cursor()
        for call in bank.calls:
            shapes = [tuple(out.shape) for out in call.truth[: len(self.output_dtypes)]]
            outputs = list(zip(shapes, self.output_dtypes, strict=True))
            call.layout = lay_out(cursor, call.inputs, outputs, self.module.problem.mutates)
        bank.nbytes, bank.guards = cursor.close(), cursor.guards
        self.banks[key] = bank
        slots = [call.layout.node() for call in bank.calls if call.layout is not None]
        return {"slots": slots}, bank.nbytes

    def attach(self, nbytes: int) -> None:
        for side, fds in self.fds.items():
            self.slabs[side] = torch.frombuffer(mmap.mmap(fds.slab, nbytes), dtype=torch.uint8)
            self.controls[side] = Control(fds.control)

    def clear(self, key: str, side: str) -> None:
        """Make a slab ready for a bank: guard bands, poison where outputs belong, no inputs yet."""
        bank, slab = self.banks[key], self.slabs[side]
        if side not in bank.filled_sides:
            bank.filled_sides.add(side)
            for start, end in bank.guards:
                slab[start:end] = self._guard[: end - start]
        self.inputs_ready = []
        for call in bank.calls:
            assert call.layout is not None
            values = (_as_bytes(t) for value in call.inputs.values() for t in tensors(value))
            views = [slab[p.offset : p.offset + p.nbytes] for p in call.layout.inputs]
            self.inputs_ready.append(list(zip(views, values, strict=True)))
            for place in call.layout.outputs:
                view = slab[place.offset : place.offset + place.nbytes]
                view.view(_BITS[place.dtype.itemsize]).fill_(self._poison(place.dtype))

    def release(self, side: str, indices: tuple[int, ...], sequence: int, skew_s: float) -> int:
        """Write the inputs of the cleared bank's calls and say go at once; when, in nanoseconds.

        The inputs of a timed burst are secret until they are needed: nobody gets a head start.
        """
        for index in indices:
            for view, value in self.inputs_ready[index]:
                view.copy_(value)
        if skew_s:
            time.sleep(skew_s)
        self.controls[side].release(sequence)
        return time.perf_counter_ns()

    def check(self, key: str, side: str) -> list[list[OutputCheck]]:
        """Snapshot a slab at once, then judge the snapshot; per call, one check per output."""
        bank = self.banks[key]
        snapshot = self.slabs[side][: bank.nbytes].clone()
        for start, end in bank.guards:
            if not torch.equal(snapshot[start:end], self._guard[: end - start]):
                return [[self._fault("guard band", Verdict.PROTOCOL_VIOLATION)]]
        return [self._check_call(call, snapshot) for call in bank.calls]

    def _check_call(self, call: Call, snapshot: torch.Tensor) -> list[OutputCheck]:
        assert call.layout is not None
        checks, mutated = self._check_inputs(call, call.layout, snapshot)
        views = [_view(snapshot, place) for place in call.layout.outputs]
        got = self._settled((*views, *mutated), call.truth, call.keys)
        for position, (name, expected) in enumerate(zip(call.names, call.truth, strict=True)):
            unwritten = self._unwritten(views[position]) if position < len(views) else 0
            if unwritten:
                late = Verdict.LATE_OUTPUT
                checks.append(self._fault(name, late, unwritten, expected.numel()))
            else:
                checks.append(self._compare(name, got[position], expected))
        return checks

    def _check_inputs(
        self, call: Call, layout: SlotLayout, snapshot: torch.Tensor
    ) -> tuple[list[OutputCheck], list[torch.Tensor]]:
        """Faults of arguments that must not change, and those that may as they are now."""
        faults = []
        may_change: dict[str, list[torch.Tensor]] = {n: [] for n in self.module.problem.mutates}
        places = iter(layout.inputs)
        for name, value in call.inputs.items():
            for tensor in tensors(value):
                seen = _view(snapshot, next(places))
                if name in may_change:
                    may_change[name].append(seen)
                elif not torch.equal(_as_bytes(seen), _as_bytes(tensor)):
                    faults.append(self._fault(name, Verdict.INPUT_CONTRACT_BROKEN))
        return faults, [view for views in may_change.values() for view in views]

    def _compare(self, name: str, got: torch.Tensor, expected: torch.Tensor) -> OutputCheck:
        found = compare(got, expected, self.tolerance)
        verdict = Verdict.OK
        if found.nonfinite:
            verdict = Verdict.NONFINITE_OUTPUT
        elif found.mismatched:
            verdict = Verdict.OUTPUT_MISMATCH
        return OutputCheck(
            rank=self.rank,
            output=name,
            elements=found.elements,
            mismatched=found.mismatched,
            max_error=found.max_error,
            verdict=verdict,
        )

    def _fault(self, name: str, verdict: Verdict, bad: int = 1, of: int = 1) -> OutputCheck:
        return OutputCheck(
            rank=self.rank,
            output=name,
            elements=of,
            mismatched=bad,
            max_error=None,
            verdict=verdict,
        )

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
            device=torch.device("cpu"),
        )
        inputs = module.make_inputs(context, module.dims(spec.m, spec.n, job.world_size))
        named = true_answer(module, inputs, self.groups)
        names, truth = tuple(n for n, _ in named), tuple(t for _, t in named)
        is_upstream = job.profile is Profile.UPSTREAM
        keys = () if is_upstream else keys_of_ties(module, inputs, self.groups)
        if check_reference or is_upstream:
            own = answers(module.reference, module.problem, inputs, self.groups)
            count = len(own) - len(mutated(module.problem, inputs))
            self.output_dtypes = tuple(out.dtype for out in own[:count])
            if is_upstream:
                truth = own
            self._check_reference(self._settled(own, truth, keys), truth)
        return Call(inputs=inputs, names=names, truth=truth, keys=keys)

    def _settled(self, got: Outputs, truth: Outputs, keys: Outputs) -> Outputs:
        """The truth in place of every answer that is as good."""
        return self.module.settle(got, truth, keys) if self.module.settle and keys else got

    def _check_reference(
        self, own: tuple[torch.Tensor, ...], truth: tuple[torch.Tensor, ...]
    ) -> None:
        """The reference itself must pass: otherwise the fault is ours, whatever the kernel does."""
        for position, (got, expected) in enumerate(zip(own, truth, strict=True)):
            check = self._compare(f"answer {position}", got, expected)
            if check.verdict is not Verdict.OK:
                raise EvaluatorError(f"the reference fails its own oracle: {check}")

    @property
    def _guard(self) -> torch.Tensor:
        if "guard" not in self.slabs:
            generator = torch.Generator().manual_seed(self._secret_int("guard"))
            size = (2 * 64 << 10,)
            self.slabs["guard"] = torch.randint(0, 256, size, generator=generator).to(torch.uint8)
        return self.slabs["guard"]

    def _unwritten(self, got: torch.Tensor) -> int:
        """Elements that still hold the poison. An integer of one byte may do so honestly."""
        dtype = got.dtype
        if dtype.itemsize == 1 and dtype is not torch.bool:
            return 0
        return int((got.view(_BITS[dtype.itemsize]) == self._poison(dtype)).sum())

    def _poison(self, dtype: torch.dtype) -> int:
        """The bits of an unwritten element: a secret NaN payload, or a secret integer."""
        secret = self._secret_int(f"poison {dtype}")
        if dtype is torch.bool:
            return 2 + secret % 250
        bits = dtype.itemsize * 8
        if dtype.is_floating_point and dtype.itemsize > 1:
            mantissa = {2: 7 if dtype is torch.bfloat16 else 10, 4: 23, 8: 52}[dtype.itemsize]
            exponent = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
            quiet = 1 << (mantissa - 1)
            return exponent | quiet | (1 + secret % (quiet - 1))
        return secret % (1 << (bits - 1)) if bits > 8 else secret % 256

    def _secret_int(self, label: str) -> int:
        digest = hashlib.sha256(self.secret + f"{label} {self.rank}".encode()).digest()
        return int.from_bytes(digest[:7], "little")


def serve(rank: JudgeRank, setup: RankSetup, commands: Connection) -> None:
    """Obey the judge until its end of the pipe closes; answers ("ok", value) or ("error", text)."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{setup.store}", rank=rank.rank, world_size=setup.world_size
    )
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
            commands.send(("ok", getattr(rank, name)(*arguments)))
        except Exception as error:  # noqa: BLE001 - a process boundary: the judge raises it again
            commands.send(("error", f"{type(error).__name__}: {error}"))


def _view(snapshot: torch.Tensor, place: Place) -> torch.Tensor:
    region = snapshot[place.offset : place.offset + place.nbytes]
    return region.view(place.dtype).view(place.shape)


def _as_bytes(value: torch.Tensor) -> torch.Tensor:
    return value.contiguous().view(-1).view(torch.uint8)
