"""Forks judges that lack a defence: `python mutant_judge.py <mutation>` and what standby takes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from evaluator.buffers import control_page
from evaluator.judge import prefork as standby
from evaluator.messages.report import OutputCheck, Verdict
from evaluator.oracle.group import Panel
from evaluator.oracle.rank import JudgeRank
from evaluator.sandbox import logs, sandbox, seccomp
from evaluator.sandbox import rank_group as ranks
from tests.evaluator.tuned_judge import hurried


def no_poison() -> None:
    """Outputs keep what the call before left in them."""
    clear = JudgeRank.clear

    def clear_all_but_outputs(self: JudgeRank, key: str, side: str) -> None:
        bank, slab = self.banks[key], self.slabs[side]
        places = [place for call in bank.calls if call.layout for place in call.layout.outputs]
        kept = [slab[place.offset : place.offset + place.nbytes].clone() for place in places]
        clear(self, key, side)
        for place, old in zip(places, kept, strict=True):
            slab[place.offset : place.offset + place.nbytes] = old

    _replace(JudgeRank, "clear", clear_all_but_outputs)


def no_fresh_inputs() -> None:
    """Every timed burst has the inputs of the first."""
    refresh = Panel.refresh

    def refresh_once(self: Panel) -> bool:
        return "timed" not in self._plans and refresh(self)

    _replace(Panel, "refresh", refresh_once)


def no_seals() -> None:
    _replace(control_page, "SEALS", 0)


def no_timed_comparison() -> None:
    """Outputs of the timed phase are believed."""
    check = Panel.check

    def check_trials(self: Panel, key: str, *given: Any) -> list[OutputCheck]:
        return [] if key == "timed" else check(self, key, *given)

    _replace(Panel, "check", check_trials)


def no_guard_bands() -> None:
    _forgive(Verdict.PROTOCOL_VIOLATION)


def no_input_comparison() -> None:
    _forgive(Verdict.INPUT_CONTRACT_BROKEN)


def no_locks() -> None:
    """All inputs of a burst can be read when it begins."""

    def nothing(self: JudgeRank, key: str, indices: tuple[int, ...]) -> dict[str, Any]:
        return {"locks": [None] * len(indices), "kernel": ""}

    _replace(JudgeRank, "lock", nothing)


def only_rank_zero_compared() -> None:
    """A wrong answer keeps its rank from the next inputs, so that goes, too."""
    no_locks()
    check = Panel.check

    def check_rank_zero(self: Panel, key: str, *given: Any) -> list[OutputCheck]:
        return [found for found in check(self, key, *given) if found.rank == 0]

    _replace(Panel, "check", check_rank_zero)


def no_seccomp() -> None:
    _replace(seccomp, "DENIED_X86_64", {})


def no_private_network() -> None:
    _without_arguments("--unshare-net")


def writable_proc() -> None:
    _without_arguments("--remount-ro", "/proc")


def no_log_cap() -> None:
    def uncapped(limits: Any) -> logs.LogCollector:
        return logs.LogCollector(1 << 30)

    _replace(ranks, "LogCollector", uncapped)


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
    check = Panel.check

    def forgiving(self: Panel, key: str, *given: Any) -> list[OutputCheck]:
        return [found for found in check(self, key, *given) if found.verdict is not verdict]

    _replace(Panel, "check", forgiving)


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
    getattr(owner, name)
    setattr(owner, name, value)


if __name__ == "__main__":
    hurried()
    MUTATIONS[sys.argv[1]]()
    standby.main(int(sys.argv[2]), *sys.argv[3:])
