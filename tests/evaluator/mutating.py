"""What mutations of a judge are made of."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from evaluator.messages.report import OutputCheck, Verdict
from evaluator.oracle.group import OracleGroup
from evaluator.sandbox import sandbox


def forgive(verdict: Verdict) -> None:
    """Every check that would give `verdict` is left out."""
    check_calls = OracleGroup.check_calls

    def forgiving(self: OracleGroup, *given: Any) -> list[list[list[OutputCheck]]]:
        return [
            [[check for check in own if check.verdict is not verdict] for own in calls]
            for calls in check_calls(self, *given)
        ]

    replace(OracleGroup, "check_calls", forgiving)


def without_arguments(*gone: str) -> None:
    """bubblewrap is called without the sequence `gone`."""
    build = sandbox._bwrap_arguments

    def fewer(*given: Any) -> Sequence[str]:
        arguments = build(*given)
        starts = range(len(arguments) - len(gone) + 1)
        start = next(i for i in starts if arguments[i : i + len(gone)] == list(gone))
        return arguments[:start] + arguments[start + len(gone) :]

    replace(sandbox, "_bwrap_arguments", fewer)


def launch_after(change: str) -> None:
    """Sides' launchers run these lines first."""
    launch = sandbox.launch
    program = (
        f"import sys\n{change}\nfrom evaluator.rank import launcher\n"
        "launcher.main(int(sys.argv[1]), import_early='early' in sys.argv, for_kernels=False)"
    )

    def launch_changed(own: Sequence[str], **how: Any) -> sandbox.Sandbox:
        return launch(["-c", program, *own[2:]], **how)

    replace(sandbox, "launch", launch_changed)


def replace(owner: object, name: str, value: object) -> None:
    """Fails where the judge no longer has what a mutation means to remove."""
    was = getattr(owner, name)
    if isinstance(owner, type) and callable(value):  # commands cross processes by their names
        functools.update_wrapper(value, was)
    setattr(owner, name, value)
