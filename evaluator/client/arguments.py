"""Reads the command line: one table of commands, for the parser and for shells."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

from .catalogue import BACKENDS

LICENCES = ("Apache-2.0", "MIT", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0")
VISIBILITIES = ("public", "unlisted", "private")
HARNESSES = ("zero-shot", "repeated", "agentic", "human")
_A_RUN = "an id, or the address of its page"
OFFLINE = ("check", "convert", "completion")
_EPILOG = (
    "Exit status: 0 ok, 1 a verdict that is not ok, 2 a wrong call, 3 refused by the site,"
    " 4 no answer."
)


def _add_problems(one: ArgumentParser) -> None:
    one.add_argument("--category", help="as tensor_parallel")


def _add_show(one: ArgumentParser) -> None:
    one.add_argument("problem", help="number or slug")
    one.add_argument("--reference", action="store_true", help="print the reference's source alone")
    one.add_argument("--prompt", action="store_true", help="print what a model is given of it")
    usual = {"backend": "cuda", "hardware": "h200x4", "size": "standard", "dtype": "bfloat16"}
    for name, value in usual.items():
        one.add_argument(f"--{name}", help=f"of the prompt; default: {value}")
    one.add_argument("--world-size", type=int, help="of the prompt; default: as many as fit")


def _add_new(one: ArgumentParser) -> None:
    one.add_argument("problem", help="number or slug")
    one.add_argument("--backend", choices=BACKENDS, default="pytorch", help="default: pytorch")
    one.add_argument("-o", "--output", type=Path, help="default: 1_allreduce_pytorch.py")
    one.add_argument("--agent", action="store_true", help="AGENTS.md and a skill beside it")


def _add_check(one: ArgumentParser) -> None:
    one.add_argument("paths", nargs="+", type=Path, metavar="FILE", help="or folder, or archive")
    _add_kernel(one)


def _add_kernel(one: ArgumentParser) -> None:
    """Add what a kernel's file may leave out, and what it is judged on."""
    one.add_argument("--problem", help="number or slug, unless the file's name says it")
    one.add_argument("--backend", choices=BACKENDS, help="unless the file's name says it")
    one.add_argument("--device", choices=("cpu", "cuda"))
    one.add_argument("--world-size", type=int, help="ranks")
    one.add_argument("--size", help="tiny, standard, large")
    one.add_argument("--dtype", choices=("float32", "bfloat16", "float16"))
    one.add_argument("--placement", choices=("full", "shared"))


def _add_submit(one: ArgumentParser) -> None:
    one.add_argument("path", type=Path, metavar="FILE", help="or folder, or archive")
    _add_kernel(one)
    one.add_argument("--model", help="needed, unless a folder's name or a manifest says it")
    one.add_argument("--harness", choices=HARNESSES, help="needed, unless a manifest says it")
    one.add_argument("--vendor", help="who makes the model")
    one.add_argument("--attempt", type=int, help="which sample it is, of one file")
    one.add_argument("--step", type=int, help="which revision it is, of one file")
    one.add_argument("--step-budget", type=int, help="steps of an agentic harness")
    one.add_argument("--cost-usd", type=float, help="what making all of it cost")
    one.add_argument("--hardware", help="as h200x4")
    one.add_argument("--profile", choices=("hardened", "upstream"))
    one.add_argument("--team", help="whose members may see it: the last part of its address")
    one.add_argument("--visibility", choices=VISIBILITIES)
    one.add_argument(
        "--public-from", metavar="DATE", help="hidden until then, as 2026-12-24T00:00Z"
    )
    one.add_argument(
        "--practice",
        action="store_const",
        const=True,
        help="judge it after all that is ranked, and count it nowhere; private",
    )
    one.add_argument(
        "--withhold-source",
        dest="withholds_source",
        action="store_const",
        const=True,
        help="show results to all, the source to you and your team; may be published later",
    )
    one.add_argument(
        "--licence", choices=LICENCES, help="its kernels may be trained on under it; default: none"
    )
    one.add_argument("--link", help="https://… of a page about it")
    one.add_argument("--notes", help="shown with it")
    one.add_argument("--key", help="idempotency key; default: a digest of all that is sent")
    one.add_argument("--wait", action="store_true", help="follow the runs to their verdicts")


def _add_runs(one: ArgumentParser) -> None:
    one.add_argument("--problem", help="number or slug")
    one.add_argument("--submission", type=int)
    one.add_argument("--status", choices=("queued", "running", "done", "failed", "cancelled"))
    one.add_argument("--verdict", help="as ok, output_mismatch")
    one.add_argument("--placement", choices=("full", "shared"))
    one.add_argument(
        "--mine", action="store_const", const=1, help="only what the token's owner handed in"
    )
    one.add_argument("--limit", type=int, default=50, help="default: 50")


def _add_board(one: ArgumentParser) -> None:
    one.add_argument("--csv", action="store_true", help="as the site's CSV")
    for name in ("category", "harness", "backend", "hardware", "ranks", "size", "dtype", "sort"):
        one.add_argument(f"--{name}", help="as on the site's page")


def _add_convert(one: ArgumentParser) -> None:
    one.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help=".jsonl of answers, .eval or .json of Inspect, *.traj.json of mini-swe-agent, a run of"
        " KernelBench or verifiers, solutions_… of PKB's generator, the folder of its agent's logs",
    )
    one.add_argument("-o", "--output", type=Path, help="default: <model>.tar.gz")
    one.add_argument("--model", help="unless they say it; of agents' logs it chooses one")
    one.add_argument("--harness", choices=HARNESSES, help="default: as they show")
    one.add_argument("--problem", help="number or slug, if all are of one and do not say it")
    one.add_argument("--backend", choices=BACKENDS, help="unless they say it")
    one.add_argument(
        "--problem-field", metavar="NAME", help="which field names the problem: metadata.task"
    )
    one.add_argument("--level", type=int, help="of KernelBench's levels, the one of PKB's problems")


def _add_login(one: ArgumentParser) -> None:
    one.add_argument("address", metavar="SITE", help="https://leaderboard.example.org")


def _add_watch(one: ArgumentParser) -> None:
    one.add_argument("runs", nargs="+", metavar="RUN", help=_A_RUN)


def _add_run(one: ArgumentParser) -> None:
    one.add_argument("run", metavar="RUN", help=_A_RUN)


def _add_own(one: ArgumentParser) -> None:
    one.add_argument("submission", type=int, metavar="SUBMISSION", help="its number")


def _add_publish(one: ArgumentParser) -> None:
    _add_own(one)
    one.add_argument(
        "--source", action="store_true", help="publish its withheld source instead, for good"
    )


def _add_edit(one: ArgumentParser) -> None:
    _add_own(one)
    one.add_argument("--visibility", choices=VISIBILITIES, help="public only before it is judged")
    one.add_argument(
        "--public-from", metavar="DATE", help="hidden until then, as 2026-12-24T00:00Z; or none"
    )
    one.add_argument("--licence", choices=(*LICENCES, "none"), help="to train on its kernels")
    one.add_argument("--step-budget", metavar="STEPS", help="of an agentic harness; or none")
    one.add_argument("--cost-usd", metavar="USD", help="what making all of it cost; or none")
    one.add_argument("--link", help="https://… of a page about it; or none")
    one.add_argument("--notes", help="shown with it, instead of those that it has")


def _add_withdraw(one: ArgumentParser) -> None:
    _add_own(one)
    one.add_argument("--reason", help="shown with it")


def _add_bundle(one: ArgumentParser) -> None:
    _add_run(one)
    one.add_argument("-o", "--output", type=Path, default=Path(), help="folder or file")


def _add_fetch(one: ArgumentParser) -> None:
    one.add_argument("problem", help="number or slug")
    one.add_argument("--best", action="store_true", help="the fastest correct kernel; needed")
    one.add_argument("--hardware", help="as h200x2; default: the setting of the problem's page")
    one.add_argument("-o", "--output", type=Path, help="default: 5_scatter_triton.py")


def _add_compare(one: ArgumentParser) -> None:
    one.add_argument("kernels", nargs=2, metavar="KERNEL", help="the SHA-256 of its source")


def _add_diff(one: ArgumentParser) -> None:
    one.add_argument("runs", nargs=2, metavar="RUN", help=_A_RUN)


def _add_completion(one: ArgumentParser) -> None:
    one.add_argument("shell", choices=("bash", "zsh", "fish"))


COMMANDS: Mapping[str, tuple[str, Callable[[ArgumentParser], None]]] = {
    "login": ("keep a site's address and a token", _add_login),
    "problems": ("list the problems", _add_problems),
    "show": ("show a problem and the best kernels", _add_show),
    "new": ("start a kernel of a problem", _add_new),
    "check": ("say offline what would be refused and what hosts it needs", _add_check),
    "submit": ("hand in a kernel, a folder or an archive", _add_submit),
    "watch": ("follow runs to their verdicts", _add_watch),
    "runs": ("list runs, newest first", _add_runs),
    "logs": ("print what the ranks of a run wrote", _add_run),
    "report": ("print the judge's whole report", _add_run),
    "bundle": ("fetch what repeats a run", _add_bundle),
    "cancel": ("end a run that waits", _add_run),
    "publish": ("make a hidden submission public, or a withheld source", _add_publish),
    "edit": ("change what a submission says of itself", _add_edit),
    "withdraw": ("take a submission out of every ranking, for good", _add_withdraw),
    "rerun": ("queue again what is stale or ended without a result", _add_own),
    "board": ("show the leaderboard", _add_board),
    "fetch": ("write the best kernel, with licence and origin", _add_fetch),
    "compare": ("set two kernels side by side", _add_compare),
    "diff": ("show in which lines the kernels of two runs differ", _add_diff),
    "convert": ("make an archive of what other harnesses leave", _add_convert),
    "completion": ("print what completes commands in a shell", _add_completion),
}


def parser() -> ArgumentParser:
    """Return the parser of all commands."""
    made = ArgumentParser(
        prog="pkb", description="Hand kernels in to a PKB leaderboard.", epilog=_EPILOG
    )
    made.add_argument("--version", action="version", version=f"pkb {version()}")
    commands = made.add_subparsers(dest="command")
    for name, (text, add) in COMMANDS.items():
        one = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        add(one)
        one.add_argument("--json", action="store_true", help="one JSON document, errors too")
        if name not in ("login", *OFFLINE):
            one.add_argument("--site", metavar="URL", help="instead of that of the last login")
    return made


def version() -> str:
    """Return the release that this program is of: a clone and `pkb.pyz` say it, else the wheel."""
    around = sys.modules[__package__.rpartition(".")[0]]
    return getattr(around, "__version__", None) or metadata.version("pkb-client")


def options(made: ArgumentParser) -> dict[str, list[str]]:
    """Return by command the words that may follow it."""
    return {
        name: [word for each in one._actions for word in _words(each)]
        for action in made._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, one in action.choices.items()
    }


def _words(action: argparse.Action) -> list[str]:
    return [*action.option_strings, *(action.choices or ())]
