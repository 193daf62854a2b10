"""Runs a command, and turns what it meets into an exit status."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence

from . import (
    completion,
    converting,
    fetching,
    login,
    owning,
    reading,
    skeletons,
    submitting,
    watching,
)
from .arguments import OFFLINE, parser
from .console import note, say_json
from .failures import MISUSED, NO_ANSWER, OK, Failure, Misused, NoAnswer

INTERRUPTED = 130
COMMANDS: Mapping[str, Callable[[Namespace], int]] = {
    "login": login.login,
    "problems": reading.problems,
    "show": reading.show,
    "new": skeletons.new,
    "check": submitting.check,
    "submit": submitting.submit,
    "watch": watching.watch,
    "runs": reading.runs,
    "logs": reading.logs,
    "report": reading.report,
    "bundle": reading.bundle,
    "cancel": watching.cancel,
    "publish": owning.publish,
    "edit": owning.edit,
    "withdraw": owning.withdraw,
    "rerun": owning.rerun,
    "board": reading.board,
    "fetch": fetching.fetch,
    "compare": reading.compare,
    "diff": reading.diff,
    "convert": converting.convert,
    "completion": completion.completion,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` names and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter gets its number.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    arguments = parser().parse_args(argv)
    if arguments.command is None:
        parser().print_help()
        return OK
    try:
        return COMMANDS[arguments.command](arguments)
    except Failure as failure:
        _tell(failure, arguments.json)
        return failure.status
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing is left to be flushed at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        # Of a file; those of a connection are told as no answer.
        _tell(Misused(str(error)), arguments.json)
        return MISUSED
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if arguments.command in OFFLINE:
            raise
        # An answer of another shape than the API's: of another site, or of a newer one.
        _tell(NoAnswer(f"an answer that this pkb does not know: {error!r}"), arguments.json)
        return NO_ANSWER
    except KeyboardInterrupt:
        return INTERRUPTED


def _tell(failure: Failure, as_json: bool) -> None:
    if as_json:
        told = {"code": failure.code, "message": failure.message, "fix": failure.fix}
        say_json({"error": {**told, "fields": dict(failure.fields)}})
        return
    note(f"pkb: {failure.message}")
    if failure.fix:
        note(f"  {failure.fix}")
    for name, text in failure.fields.items():
        note(f"  {name}: {text}")
