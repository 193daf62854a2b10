"""Mutations of a judge: each lacks a defence."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from evaluator.buffers import control_page, sealing
from evaluator.diagnosis import claim_reader
from evaluator.host import processes
from evaluator.judge import phases, process, timed_phase
from evaluator.judge.early_sends import Watch
from evaluator.messages.report import OutputCheck, Verdict
from evaluator.oracle import group
from evaluator.oracle.canaries import Canaries
from evaluator.oracle.group import SPARE_CALLS, OracleGroup
from evaluator.oracle.rank import OracleRank
from evaluator.sandbox import (
    logs,
    multicast_guard,
    process_limits,
    rank_group,
    sandbox,
    seccomp,
    side_launch,
)
from evaluator.sandbox.pausing import Pauser
from problems.spec import Problem
from problems.trials import TrialSpec, plain_trial
from tests.evaluator.mutating import forgive, launch_after, replace, without_arguments
from tests.evaluator.mutations_of_times import OF_TIMES
from tests.evaluator.tuned_judge import bereaved, gated, watched, with_device


def no_poison() -> None:
    """Outputs keep what the call before left in them."""
    replace(Canaries, "fill", lambda self, view, dtype: None)


def no_fresh_inputs() -> None:
    """Every timed batch has the inputs of the first. What was cached for them is wrong in trials
    after that, so those go, too."""
    no_trials_after_timing()
    refresh = OracleGroup.refresh

    def refresh_once(self: OracleGroup, calls: int = 0) -> None:
        if "timed" not in self._plans:
            refresh(self)

    replace(OracleGroup, "refresh", refresh_once)


def no_seals() -> None:
    replace(control_page, "SEALS", 0)


def no_timed_comparison() -> None:
    """Outputs of the timed phase are believed."""
    check = OracleGroup.check

    def check_trials(self: OracleGroup, key: str, *given: Any) -> list[OutputCheck]:
        return [] if key == "timed" else check(self, key, *given)

    replace(OracleGroup, "check", check_trials)


def no_guard_bands() -> None:
    forgive(Verdict.PROTOCOL_VIOLATION)


def no_input_comparison() -> None:
    forgive(Verdict.INPUT_CONTRACT_BROKEN)


def no_sealing() -> None:
    """The inputs of a gated call can be read before its gate opens."""
    gated()

    def write(to: torch.Tensor, plain: torch.Tensor, offset: int, key: int) -> None:
        to[: len(plain)] = plain

    replace(sealing, "seal", write)
    launch_after("from evaluator.buffers import sealing\nsealing.unseal = lambda *_: None")


def no_commitment_check() -> None:
    """Nobody asks whether outputs are those that a rank committed to."""
    gated()
    replace(timed_phase, "check_commitments", lambda *given: None)


def no_watch() -> None:
    """Nobody asks what was sent before the gate opened."""
    watched()

    def pass_over(self: Watch) -> None:
        self.calls += 1

    replace(Watch, "check", pass_over)


def inputs_all_at_once() -> None:
    """The inputs of a round are written before its first call."""

    def clear(self: OracleGroup, key: str, side: str) -> None:
        written = SPARE_CALLS + self.batch_calls if key == "timed" else 0
        self._workers.all(OracleRank.clear, key, side, written)

    replace(OracleGroup, "clear", clear)


def singles_compared_together() -> None:
    """What calls left is copied only when all of a round have been made."""
    snapshot, check = OracleGroup.snapshot, OracleGroup.check
    left = list[tuple[str, int]]()

    def later(self: OracleGroup, key: str, side: str, called: tuple[int, ...] = (0,)) -> None:
        if key == "timed" and len(called) == 1:
            left.append((side, *called))
        else:
            snapshot(self, key, side, called)

    def check_all(self: OracleGroup, key: str, *given: Any) -> list[OutputCheck]:
        if left:
            snapshot(self, key, left[0][0], tuple(slot for _, slot in left))
            left.clear()
        return check(self, key, *given)

    replace(OracleGroup, "snapshot", later)
    replace(OracleGroup, "check", check_all)


def no_trials_after_timing() -> None:
    """Nobody is asked for anything once the timed phase is over."""
    replace(phases, "trials_before_timing", lambda count: count)


def timed_calls_alike() -> None:
    """Options of all timed calls are the first ones, and lengths the published."""

    def plain(problem: Problem, size: str, trial: int, secret: bytes) -> TrialSpec:
        return dataclasses.replace(plain_trial(problem, size), trial=trial)

    replace(group, "timed_trial", plain)


def only_rank_zero_compared() -> None:
    check_calls = OracleGroup.check_calls

    def check_rank_zero(self: OracleGroup, *given: Any) -> list[list[list[OutputCheck]]]:
        return check_calls(self, *given)[:1]

    replace(OracleGroup, "check_calls", check_rank_zero)


def no_race_screen() -> None:
    """Calls never follow each other without the judge between them."""
    replace(phases, "screen_races", lambda context: [])


def no_seccomp() -> None:
    replace(seccomp, "DENIED_X86_64", {})


def launcher_in_reach() -> None:
    """A rank may take its launcher's channel and say there what it likes."""
    allowed = {n: c for n, c in seccomp.DENIED_X86_64.items() if n != "pidfd_getfd"}
    replace(seccomp, "DENIED_X86_64", allowed)
    launch_after("from evaluator.rank import launcher\nlauncher._set_dumpable = lambda _: None")


def notes_are_believed() -> None:
    """What is said on that channel is taken for what a launcher says."""
    launcher_in_reach()

    def believed(note: bytes, _: int) -> claim_reader.End:
        said = json.loads(note)
        return claim_reader.End(code=said["code"], ranks=(said["rank"],))

    replace(rank_group, "read_end", believed)


def names_are_text() -> None:
    """Names of processes are read as the text that honest ones are, where none can be frozen and
    each pause reads them."""
    replace(sandbox, "create_freezer", lambda leaf: None)

    def strict(pid: int, task: int | None = None) -> list[str]:
        return Path("/proc", str(pid), "stat").read_text("utf-8").rpartition(")")[2].split()

    replace(processes, "_fields", strict)


def no_private_network() -> None:
    without_arguments("--unshare-net")


def writable_proc() -> None:
    without_arguments("--remount-ro", "/proc")


def no_multicast_guard() -> None:
    """Sandboxes that have a device load nothing before what the kernel loads."""
    with_device()
    replace(multicast_guard, "arguments", lambda _: ([], []))


def no_log_cap() -> None:
    def uncapped(limits: Any) -> logs.LogCollector:
        return logs.LogCollector(1 << 30)

    replace(side_launch, "LogCollector", uncapped)


def no_kill() -> None:
    """Nothing is killed at the end, and nothing dies with its parent."""
    without_arguments("--die-with-parent")
    replace(process_limits, "die_with_parent", lambda _: None)
    replace(sandbox.Sandbox, "kill", lambda self: None)


def stops_first_threads() -> None:
    """SIGSTOP goes only to processes whose first thread runs or sleeps, as judges 1 to 6 had it."""

    def all_stopped(self: Pauser) -> bool:
        states = {pid: _first_thread(pid) for pid in self.pids()}
        moving = [pid for pid, state in states.items() if state in ("R", "S", "I")]
        for pid in moving:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        return not moving

    def nothing(self: Pauser, *given: Any) -> None:
        """Nobody looks at what was used."""

    replace(sandbox, "create_freezer", lambda _: None)
    replace(Pauser, "_all_signalled", all_stopped)
    replace(Pauser, "_record", nothing)


def errors_beside_are_ours() -> None:
    """Where ours fail beside a submission, as they do here once, that is our error."""
    bereaved()
    replace(
        process.JudgeServer,
        "_judged",
        lambda self, job: self._run(
            job, partial(phases.run_phases, baselines=self._baselines), bytes(16)
        ),
    )


MUTATIONS: dict[str, Callable[[], None]] = {
    mutation.__name__: mutation
    for mutation in (
        no_poison,
        no_fresh_inputs,
        no_seals,
        no_timed_comparison,
        no_guard_bands,
        no_input_comparison,
        no_sealing,
        no_commitment_check,
        no_watch,
        inputs_all_at_once,
        singles_compared_together,
        no_trials_after_timing,
        timed_calls_alike,
        only_rank_zero_compared,
        no_race_screen,
        no_seccomp,
        launcher_in_reach,
        notes_are_believed,
        names_are_text,
        no_private_network,
        writable_proc,
        no_multicast_guard,
        no_log_cap,
        no_kill,
        stops_first_threads,
        errors_beside_are_ours,
        *OF_TIMES,
    )
}


def _first_thread(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    return "Z"
