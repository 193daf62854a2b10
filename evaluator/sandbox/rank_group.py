"""Handles the sandboxed ranks of one side (submission or reference) for the judge."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluator.buffers.control import Control
from evaluator.buffers.control_page import Command
from evaluator.diagnosis import watch
from evaluator.diagnosis.claim_reader import Claim, read_end
from evaluator.host.load import limit_s, patience
from evaluator.messages.codec import encode
from evaluator.messages.faults import EvaluatorError, Fault, GpuFull
from evaluator.messages.job import Device, Limits, Placement
from evaluator.messages.rank_setup import RankSetup, Task, has_joined, send_setup, send_slab
from evaluator.messages.report import Isolation, Phase, RankLog, Verdict
from evaluator.sandbox import rank_faults, sandbox
from evaluator.sandbox.logs import LogCollector
from evaluator.sandbox.wait_clock import WaitClock

BUILD_POLL_S, POLL_S = 0.002, 0.00004
HEALTH_EVERY_S = 0.02
CLAIM_GRACE_S = 0.2
HANG_REPORT_S = 0.5


@dataclass(kw_only=True)
class RankGroup:
    """Holds W ranks in one sandbox. Started before the judge imports torch, so that imports
    overlap. The last trial took `call_s`, and the last command is one of so many `calls`."""

    side: str
    limits: Limits
    sandbox: sandbox.Sandbox
    channel: socket.socket
    logs: LogCollector
    slab_channels: list[socket.socket]
    control_fds: list[int]
    controls: list[Control]
    phase: Phase = Phase.BUILD
    waited_s: float = 0.0
    is_started: bool = False
    is_watched: bool = False
    is_ended: bool = False
    spins: bool = False
    standstill_s: float = watch.STANDSTILL_S
    patience: float = 1.0
    call_s: float = 0.0
    calls: int = 0

    @property
    def isolation(self) -> Isolation:
        """Return the level of the sandbox."""
        return self.sandbox.isolation

    @property
    def is_idle(self) -> bool:
        """Return whether every rank has done what it was told, or was told nothing yet."""
        is_done = all(control.is_done and not control.claim for control in self.controls)
        return is_done and self.sandbox.is_alive

    def start(self, setup: RankSetup) -> None:
        """Have the ranks join their group and import their entry."""
        self.is_started, self.patience = True, patience()
        self.is_watched = setup.task.entry is not None  # standing still, the reference is our fault
        self.spins = setup.device == Device.CUDA
        is_crowded = self.spins and setup.placement is Placement.SHARED
        self.standstill_s = watch.SHARED_STANDSTILL_S if is_crowded else watch.STANDSTILL_S
        logs = [self.logs.open_pipe(rank) for rank in range(setup.world_size)]
        self.logs.start()
        ends = [socket.socketpair() for _ in range(setup.world_size)]
        self.slab_channels = [ours for ours, _ in ends]
        theirs = [their.detach() for _, their in ends]
        own = zip(theirs, self.control_fds, logs, strict=True)
        with contextlib.suppress(BrokenPipeError):
            send_setup(self.channel, setup, [fd for three in own for fd in three])
        for fd in theirs + logs:
            os.close(fd)
        self._command(Command.CALL)

    def give_task(self, task: Task) -> None:
        """Give ranks that have served before another task; they are the reference's."""
        self.patience = patience()
        for control in self.controls:
            control.pin(None)
            control.write_plan(encode(task))
        self._command(Command.TASK)

    def give_slabs(self, slabs: Sequence[tuple[int, int]]) -> None:
        """Send every rank its slab, to be mapped with the first plan; closes the descriptors."""
        for channel, (fd, nbytes) in zip(self.slab_channels, slabs, strict=True):
            with contextlib.suppress(OSError):  # a rank without a slab never answers
                send_slab(channel, fd, nbytes)
            os.close(fd)

    def pin(self, cores: Sequence[int]) -> None:
        """Keep the ranks' main threads to these processors from the next plan on."""
        for control, core in zip(self.controls, cores, strict=True):
            control.pin(core)

    def load(self, plans: Sequence[dict[str, Any]]) -> None:
        """Give every rank a new plan of its slab and wait until all have taken it."""
        self._hand(Command.LOAD_PLAN, plans)

    def ask(self, command: Command, indices: tuple[int, ...] = ()) -> list[bytes]:
        """Return what every rank says to a question: untrusted bytes. Each has the phase's whole
        limit."""
        self.waited_s = 0.0
        self._command(command, indices)
        self.wait()
        return [control.answer for control in self.controls]

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop all processes of the side while the block runs. Raises Fault where they do not stop,
        or used processor time all the same."""
        with self.sandbox.pauser.paused():
            yield

    def arm(self) -> None:
        """Wake the ranks, so that none sleeps when the next command comes."""
        self.warm_up(())

    def warm_up(self, indices: tuple[int, ...]) -> None:
        """Make calls that nobody times, after which the ranks wait spinning."""
        self._command(Command.WARM_UP, indices)
        self.wait()

    def stage(self, command: Command, indices: tuple[int, ...] = ()) -> int:
        """Prepare a command on every rank; its sequence number, which the release must carry."""
        if any(control.is_ahead for control in self.controls):
            self.check_health()
        self.calls = len(indices)
        for control in self.controls:
            control.stage(command, indices)
        return max([control.next_sequence() for control in self.controls])

    def release(self, sequence: int) -> None:
        """Say go to every rank."""
        for control in self.controls:
            control.release(sequence)

    def wait(self) -> None:
        """Wait until every rank says it is done. Raises Fault on a claim, death, limit or deadline;
        EvaluatorError where the judge was away and that may be why they were late, or while it
        took times."""
        clock = WaitClock(began_s=time.monotonic())
        try:
            self._wait(clock)
        except Fault as fault:
            if clock.away_s and fault.verdict is Verdict.TIMEOUT:
                raise EvaluatorError(f"{clock}, and {fault.message}") from fault
            raise
        if clock.away_s and self.phase is Phase.TIMED:
            raise EvaluatorError(f"{clock} while it took times")
        self.waited_s += time.monotonic() - clock.began_s - clock.away_s

    def _wait(self, clock: WaitClock) -> None:
        deadline = clock.began_s + self._limit_s() - self.waited_s
        next_health = clock.began_s + HEALTH_EVERY_S
        next_look = clock.began_s + watch.LOOK_EVERY_S
        usual_s = self.calls * self.call_s  # in which a rank may stand at its last call's end
        still_s = max(1.0, self.patience) * self.standstill_s + usual_s
        looks = watch.StandstillWatch(spins=self.spins, standstill_s=still_s)
        poll_s = BUILD_POLL_S if self.phase is Phase.BUILD else POLL_S
        while not all(control.is_done for control in self.controls):
            now = time.monotonic()
            if now > next_health:
                clock.look(now)
                self.check_health()
                clock.go_on(time.monotonic())
                next_health = now + HEALTH_EVERY_S
            if now > deadline + clock.away_s and self._silent:  # or has answered meanwhile
                raise self._attributed(self._timeout(f"within {self._limit_s():.4g} s"))
            if now > next_look:
                self._look(looks)
                clock.go_on(time.monotonic())
                next_look = now + watch.LOOK_EVERY_S
            time.sleep(poll_s)

    def enter(self, phase: Phase) -> None:
        """Begin a phase, with a time limit of its own."""
        self.phase, self.waited_s = phase, 0.0

    def check_health(self) -> None:
        """Raise Fault for a rank that claims a failure, is ahead, passed a limit, or is gone;
        EvaluatorError where the host had no memory for it, whatever others claim of that."""
        claims, is_alive = rank_faults.claims_of(self.controls), self.sandbox.is_alive
        exceeded = self.sandbox.exceeded()  # read last: it was counted before anybody ended of it
        if self.sandbox.was_starved():
            raise EvaluatorError("the host ran out of memory, far below the limit of the ranks")
        if claims:
            raise self._attributed(self._claimed(claims))
        if ahead := [rank for rank, control in enumerate(self.controls) if control.is_ahead]:
            raise rank_faults.of_tick(ahead[0])
        if exceeded is not None:
            raise self._attributed(rank_faults.of_excess(exceeded, self.limits))
        if not is_alive:
            raise self._attributed(self._death())

    def kill(self) -> tuple[RankLog, ...]:
        """End the side: everything in the sandbox dies; returns what the ranks printed."""
        self.is_ended = True
        try:
            self.sandbox.kill()
        finally:
            for channel in (self.channel, *self.slab_channels):
                channel.close()
            for fd in self.control_fds:
                os.close(fd)
        return self.logs.finish()

    def _hand(self, command: Command, plans: Sequence[dict[str, Any]]) -> None:
        for control, plan in zip(self.controls, plans, strict=True):
            control.write_plan(plan)
        self._command(command)
        self.wait()

    def _command(self, command: Command, indices: tuple[int, ...] = ()) -> None:
        self.release(self.stage(command, indices))

    def _limit_s(self) -> float:
        return limit_s(self.phase, self.limits, self.patience)

    def _claimed(self, claims: dict[int, Claim]) -> Fault:
        """Return the failure that ranks claim; of several in the build, the compiler's own."""
        if self.phase is Phase.BUILD:
            time.sleep(CLAIM_GRACE_S)
            claims = {**claims, **rank_faults.claims_of(self.controls)}
        return rank_faults.of_claims(claims)

    def _attributed(self, fault: Fault) -> Exception:
        """Return the fault, or our error where no rank had come to the source that it was given:
        until one says so nothing but our own code has run in the sandbox."""
        if self.phase is not Phase.BUILD or any(map(has_joined, self.slab_channels)):
            return fault
        kind = GpuFull if fault.cause == "gpu_memory" else EvaluatorError
        return kind(f"the ranks of the {self.side} could not begin: {fault.message}")

    @property
    def _silent(self) -> list[int]:
        return [rank for rank, control in enumerate(self.controls) if not control.is_done]

    def _look(self, looks: watch.StandstillWatch) -> None:
        """Raise Fault where the ranks are seen to wait for each other. A build may take its time;
        ranks that compute are not asked."""
        if not self.is_watched or self.phase not in (Phase.VERIFY, Phase.TIMED):
            return
        said, used_s = self.logs.heard(), self.sandbox.processor_s()
        is_still = looks.look(time.monotonic(), used_s, said, self._silent)
        if is_still and self._silent:  # nobody stands still who has answered meanwhile
            raise self._timeout(f"while standing still for {looks.standstill_s:.4g} s")
        if looks.is_idle:
            self._ask_where()

    def _ask_where(self) -> None:
        with contextlib.suppress(OSError):  # every rank prints where it is
            self.channel.send(b"?", socket.MSG_DONTWAIT)

    def _timeout(self, how: str) -> Fault:
        silent = self._silent
        self._ask_where()
        time.sleep(HANG_REPORT_S)
        return rank_faults.of_silence(silent, how, self.phase)

    def _death(self) -> Fault:
        end = read_end(rank_faults.said_at_end(self.channel), len(self.controls))
        return rank_faults.of_death(self.sandbox.process.returncode, end, self.phase)
