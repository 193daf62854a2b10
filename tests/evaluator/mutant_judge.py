"""Forks judges that lack a defence: `python mutant_judge.py <mutation>` and what prefork takes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from evaluator.buffers import control_page
from evaluator.judge import prefork, process
from evaluator.messages.report import OutputCheck, Verdict
from evaluator.oracle import group
from evaluator.oracle.group import OracleGroup
from evaluator.oracle.rank import OracleRank
from evaluator.sandbox import logs, rank_group, sandbox, seccomp
from problems.spec import Problem
from problems.trials import TrialSpec, timed_trial
from tests.evaluator.tuned_judge import hurried


def no_poison() -> None:
    """Outputs keep what the call before left in them."""
    clear = OracleRank.clear

    def clear_all_but_outputs(self: OracleRank, key: str, side: str) -> None:
        cache, slab = self.caches[key], self.slabs[side]
        places = [place for call in cache.calls if call.layout for place in call.layout.outputs]
        kept = [slab[place.offset : place.offset + place.nbytes].clone() for place in places]
        clear(self, key, side)
        for place, old in zip(places, kept, strict=True):
            slab[place.offset : place.offset + place.nbytes] = old

    _replace(OracleRank, "clear", clear_all_but_outputs)


def no_fresh_inputs() -> None:
    """Every timed batch has the inputs of the first."""
    refresh = OracleGroup.refresh

    def refresh_once(self: OracleGroup) -> bool:
        return "timed" not in self._plans and refresh(self)

    _replace(OracleGroup, "refresh", refresh_once)


def no_seals() -> None:
    _replace(control_page, "SEALS", 0)


def no_timed_comparison() -> None:
    """Outputs of the timed phase are believed."""
    check = OracleGroup.check

    def check_trials(self: OracleGroup, key: str, *given: Any) -> list[OutputCheck]:
        return [] if key == "timed" else check(self, key, *given)

    _replace(OracleGroup, "check", check_trials)


def no_guard_bands() -> None:
    _forgive(Verdict.PROTOCOL_VIOLATION)


def no_input_comparison() -> None:
    _forgive(Verdict.INPUT_CONTRACT_BROKEN)


def no_locks() -> None:
    """All inputs of a batch can be read when it begins."""

    def nothing(self: OracleRank, key: str, indices: tuple[int, ...]) -> dict[str, Any]:
        return {"locks": [None] * len(indices), "kernel": ""}

    _replace(OracleRank, "chain_inputs", nothing)


def no_trials_after_timing() -> None:
    """Nobody is asked for anything once the timed phase is over."""
    _replace(process, "trials_before_timing", lambda count: count)


def timed_calls_alike() -> None:
    """Options and ragged lengths of all timed calls are the first ones."""

    def first_slot(problem: Problem, size: str, trial: int, slot: int) -> TrialSpec:
        return timed_trial(problem, size, trial, 0)

    _replace(group, "timed_trial", first_slot)


def only_rank_zero_compared() -> None:
    """A wrong answer keeps its rank from the next inputs, so that goes, too."""
    no_locks()
    check = OracleGroup.check

    def check_rank_zero(self: OracleGroup, key: str, *given: Any) -> list[OutputCheck]:
        return [found for found in check(self, key, *given) if found.rank == 0]

    _replace(OracleGroup, "check", check_rank_zero)


def no_seccomp() -> None:
    _replace(seccomp, "DENIED_X86_64", {})


def no_private_network() -> None:
    _without_arguments("--unshare-net")


def writable_proc() -> None:
    _without_arguments("--remount-ro", "/proc")


def no_log_cap() -> None:
    def uncapped(limits: Any) -> logs.LogCollector:
        return logs.LogCollector(1 << 30)

    _replace(rank_group, "LogCollector", uncapped)


def no_kill() -> None:
    """Nothing is killed at the end, and nothing dies with its parent."""
    _without_arguments("--die-with-parent")
    _replace(sandbox, "die_with_parent", lambda _: None)
    _replace(sandbox.Sandbox, "kill", lambda self: None)


MUTATIONS: dict[str, Callable[[], None]] = {
    mutation.__name__: mutation
    for mutation in (
        no_poison,
        no_fresh_inputs,
        no_seals,
        no_timed_comparison,
        no_guard_bands,
        no_input_comparison,
        no_locks,
        no_trials_after_timing,
        timed_calls_alike,
        only_rank_zero_compared,
        no_seccomp,
        no_private_network,
        writable_proc,
        no_log_cap,
        no_kill,
    )
}


def _forgive(verdict: Verdict) -> None:
    """Every check that would give `verdict` is left out."""
    check = OracleGroup.check

    def forgiving(self: OracleGroup, key: str, *given: Any) -> list[OutputCheck]:
        return [found for found in check(self, key, *given) if found.verdict is not verdict]

    _replace(OracleGroup, "check", forgiving)


def _without_arguments(*gone: str) -> None:
    """bubblewrap is called without the sequence `gone`."""
    build = sandbox._bwrap_arguments

    def fewer(*given: Any) -> Sequence[str]:
        arguments = build(*given)
        starts = range(len(arguments) - len(gone) + 1)
        start = next(i for i in starts if arguments[i : i + len(gone)] == list(gone))
        return arguments[:start] + arguments[start + len(gone) :]

    _replace(sandbox, "_bwrap_arguments", fewer)


def _replace(owner: object, name: str, value: object) -> None:
    """Fails where the judge no longer has what a mutation means to remove."""
    was = getattr(owner, name)
    if isinstance(owner, type) and callable(value):  # commands cross processes by their names
        functools.update_wrapper(value, was)
    setattr(owner, name, value)


if __name__ == "__main__":
    hurried()
    MUTATIONS[sys.argv[1]]()
    prefork.main(int(sys.argv[2]), *sys.argv[3:])
