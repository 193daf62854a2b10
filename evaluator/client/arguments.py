"""Reads the command line: one table of commands, for the parser and for shells."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from pathlib import Path

from .catalogue import BACKENDS

HARNESSES = ("zero-shot", "repeated", "agentic", "human")
OFFLINE = ("check", "convert", "completion")
_EPILOG = (
    "Exit status: 0 ok, 1 a verdict that is not ok, 2 a wrong call, 3 refused by the site,"
    " 4 no answer."
)


def parser() -> ArgumentParser:
    """Return the parser of all commands."""
    made = ArgumentParser(
        prog="pkb", description="Hand kernels in to a PKB leaderboard.", epilog=_EPILOG
    )
    commands = made.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> ArgumentParser:
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument("--json", action="store_true", help="one JSON document, errors too")
        if name not in ("login", *OFFLINE):
            one.add_argument("--site", metavar="URL", help="instead of that of the last login")
        return one

    login = command("login", "keep a site's address and a token")
    login.add_argument("address", metavar="SITE", help="https://leaderboard.example.org")
    _add_problems(command("problems", "list the problems"))
    _add_show(command("show", "show a problem and the best kernels"))
    _add_new(command("new", "start a kernel of a problem"))
    _add_check(command("check", "say offline what would be refused and what hosts it needs"))
    _add_submit(command("submit", "hand in a kernel, a folder or an archive"))
    watch = command("watch", "follow runs to their verdicts")
    watch.add_argument("runs", nargs="+", metavar="RUN", help="an id, or the address of its page")
    _add_runs(command("runs", "list runs, newest first"))
    for name, text in (
        ("logs", "print what the ranks of a run wrote"),
        ("report", "print the judge's whole report"),
        ("bundle", "fetch what repeats a run"),
        ("cancel", "end a run that waits"),
    ):
        one = command(name, text)
        one.add_argument("run", metavar="RUN", help="its id, or the address of its page")
        if name == "bundle":
            one.add_argument("-o", "--output", type=Path, default=Path(), help="folder or file")
    _add_board(command("board", "show the leaderboard"))
    compare = command("compare", "set two kernels side by side")
    compare.add_argument("kernels", nargs=2, metavar="KERNEL", help="the SHA-256 of its source")
    diff = command("diff", "show in which lines the kernels of two runs differ")
    diff.add_argument("runs", nargs=2, metavar="RUN", help="an id, or the address of its page")
    _add_convert(command("convert", "make an archive of what other harnesses leave"))
    completion = command("completion", "print what completes commands in a shell")
    completion.add_argument("shell", choices=("bash", "zsh"))
    return made


def _add_problems(one: ArgumentParser) -> None:
    one.add_argument("--category", help="as tensor_parallel")


def _add_show(one: ArgumentParser) -> None:
    one.add_argument("problem", help="number or slug")
    one.add_argument("--reference", action="store_true", help="print the reference's source alone")


def _add_new(one: ArgumentParser) -> None:
    one.add_argument("problem", help="number or slug")
    one.add_argument("--backend", choices=BACKENDS, default="pytorch", help="default: pytorch")
    one.add_argument("-o", "--output", type=Path, help="default: 1_allreduce_pytorch.py")


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
    one.add_argument("--model", help="needed, unless a folder's name says it")
    one.add_argument("--harness", choices=HARNESSES, required=True)
    one.add_argument("--vendor", help="who makes the model")
    one.add_argument("--attempt", type=int, help="which sample it is, of one file")
    one.add_argument("--step", type=int, help="which revision it is, of one file")
    one.add_argument("--step-budget", type=int, help="steps of an agentic harness")
    one.add_argument("--cost-usd", type=float, help="what making all of it cost")
    one.add_argument("--hardware", help="as h200x4")
    one.add_argument("--profile", choices=("hardened", "upstream"))
    one.add_argument("--visibility", choices=("public", "unlisted", "private"))
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
    one.add_argument("--limit", type=int, default=50, help="default: 50")


def _add_board(one: ArgumentParser) -> None:
    one.add_argument("--csv", action="store_true", help="as the site's CSV")
    for name in ("category", "harness", "backend", "hardware", "ranks", "size", "dtype", "sort"):
        one.add_argument(f"--{name}", help="as on the site's page")


def _add_convert(one: ArgumentParser) -> None:
    one.add_argument(
        "folders",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="solutions_… of PKB's generator, or the folder with an agent's solutions_… and logs/;"
        " several are attempts 1, 2, 3",
    )
    one.add_argument("-o", "--output", type=Path, help="default: <model>.tar.gz")
    one.add_argument("--model", help="unless the folders say it; of agents' logs it chooses one")
    one.add_argument("--harness", choices=HARNESSES, help="default: as the folders show")


def options(made: ArgumentParser) -> dict[str, list[str]]:
    """Return by command the words that may follow it."""
    found = {}
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                found[name] = [
                    word
                    for each in one._actions
                    for word in (*each.option_strings, *(each.choices or ()))
                ]
    return found
