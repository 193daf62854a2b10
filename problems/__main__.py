"""Command line: list the problems, screen them, export them for the site."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import problems
from problems.trials import PROFILES


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m problems", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="print number, name and title of every problem")
    screening = commands.add_parser("screen", help="try wrong and honest answers on gloo ranks")
    screening.add_argument("problem", nargs="*", help="slug, number or dotted name; default: all")
    screening.add_argument("--profile", choices=PROFILES, default="hardened")
    screening.add_argument("--size", default="tiny")
    screening.add_argument("--world-size", type=int, default=2)
    screening.add_argument("--secrets", type=int, default=1, help="repeat with so many secrets")
    export = commands.add_parser("export", help="write fixtures/problems.json")
    export.add_argument("--keep-health", action="store_true", help="do not run the screen again")
    arguments = parser.parse_args(argv)
    try:
        return COMMANDS[arguments.command](arguments)
    except problems.UnknownProblem as error:
        print(error, file=sys.stderr)
        return 2


def _list(arguments: argparse.Namespace) -> int:
    for name in problems.names():
        problem = problems.load(name).problem
        print(f"{problem.number:3}  {name:48} {problem.title}")
    return 0


def _screen(arguments: argparse.Namespace) -> int:
    """Exit status 1 when a finding is not as it should be."""
    from problems.ranks import GlooRanks
    from problems.screen import screen

    names = [problems.find(text) for text in arguments.problem] or problems.names()
    surprises = 0
    with GlooRanks(arguments.world_size) as ranks:
        for name in names:
            for number in range(arguments.secrets):
                secret = f"screen {number}".encode()
                findings = screen(
                    ranks, name, arguments.profile, size=arguments.size, secret=secret
                )
                for finding in (f for f in findings if not f.as_it_should_be):
                    surprises += 1
                    verb = "accepts" if finding.accepted else "rejects"
                    print(f"{name} {verb} {finding.answer} ({finding.why})")
    print(f"{len(names)} problems screened, {surprises} surprises")
    return 1 if surprises else 0


def _export(arguments: argparse.Namespace) -> int:
    from problems.catalogue import PATH, catalogue, health_rows, stored_health, write
    from problems.ranks import GlooRanks
    from problems.screen import screen

    if arguments.keep_health:
        health = stored_health()
    else:
        health = {}
        with GlooRanks(2, timeout_s=600) as ranks:
            for name in problems.names():
                published = screen(ranks, name, "upstream", size="standard")
                hardened = screen(ranks, name, "hardened", size="tiny")
                health[problems.load(name).slug] = health_rows(published + hardened)
                print(f"screened {name}", flush=True)
    write(catalogue(health))
    print(f"wrote {PATH}")
    return 0


COMMANDS = {"list": _list, "screen": _screen, "export": _export}

if __name__ == "__main__":
    sys.exit(main())
