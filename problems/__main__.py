"""List, start, check, screen, audit, export and prompt problems from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import problems
from problems.environment import environment_text, of_release
from problems.prompt import DIALECTS, FENCED, prompt
from problems.topology import class_called, problem_text
from problems.trials import PROFILES

if TYPE_CHECKING:
    from problems.running.ranks import RankPool


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        return COMMANDS[arguments.command](arguments)
    except (problems.UnknownProblem, ValueError) as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m problems", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="print number, name and title of every problem")
    new = commands.add_parser("new", help="write the skeleton of a problem")
    new.add_argument("category", help="a folder of problems/, as tensor_parallel")
    new.add_argument("slug", help="the file's name without .py")
    check = commands.add_parser("check", help="try every rule on CPU and say what is missing")
    check.add_argument("problem", nargs="+", help="slug, number or dotted name")
    screening = commands.add_parser("screen", help="try wrong and honest answers on ranks")
    screening.add_argument("problem", nargs="*", help="slug, number or dotted name; default: all")
    screening.add_argument("--profile", choices=PROFILES, default="hardened")
    screening.add_argument("--size", default="tiny")
    screening.add_argument("--world-size", type=int, default=2)
    screening.add_argument("--secrets", type=int, default=1, help="repeat with so many secrets")
    screening.add_argument("--errors", action="store_true", help="print every answer's error")
    screening.add_argument("--cuda", action="store_true", help="on GPUs with NCCL, not on the CPU")
    audit = commands.add_parser("audit", help="screen and keep what was found")
    audit.add_argument("problem", nargs="*", help="slug, number or dotted name; default: all")
    audit.add_argument("--profile", choices=PROFILES, help="default: both")
    audit.add_argument("--seeds", type=int, default=18, help="hardened inputs, per world size")
    audit.add_argument("--honest-seeds", type=int, default=100, help="of them for honest answers")
    audit.add_argument("--jobs", type=int, default=1, help="problems screened at once")
    audit.add_argument("--size", default="tiny", help="of hardened inputs; default: tiny")
    audit.add_argument("--cuda", action="store_true", help="on 4 GPUs with NCCL, not on the CPU")
    audit.add_argument("--shared", action="store_true", help="with --cuda: all ranks on one GPU")
    commands.add_parser("export", help="write fixtures/problems.json for the site")
    _add_prompt(commands.add_parser("prompt", help="print what a model is given of a problem"))
    return parser


def _add_prompt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("problem", help="slug, number or dotted name")
    parser.add_argument("--backend", choices=sorted(DIALECTS), default="cuda")
    parser.add_argument("--hardware", default="h200x4", help="cpu, h200x4 or '8 x NVIDIA B200'")
    parser.add_argument("--world-size", type=int, help="default: as many as fit")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--size", default="standard")


def _names(arguments: argparse.Namespace) -> list[str]:
    return [problems.find(text) for text in arguments.problem] or problems.names()


def _list(arguments: argparse.Namespace) -> int:
    for name in problems.names():
        problem = problems.load(name).problem
        print(f"{problem.number:3}  {name:48} {problem.title}")
    return 0


def _new(arguments: argparse.Namespace) -> int:
    from problems.skeleton import create

    path = create(arguments.category, arguments.slug)
    print(f"wrote {path}\nnow fill it in; `python -m problems check {path.stem}` says what is left")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    """Print what rules complain of, or what is still due; return 1 when one complains."""
    from problems.audit.checks import complaints, due

    names, found = _names(arguments), 0
    for name, complaint in complaints(names):
        found += 1
        print(f"{name}: {complaint}")
    if found:
        print(f"{found} complaints")
        return 1
    print("every rule is kept")
    for command in due(names):
        print(f"still due: {command}")
    return 0


def _screen(arguments: argparse.Namespace) -> int:
    """Print surprises; return 1 for a finding not as it should be, or a problem that fails."""
    from problems.running.ranks import RankFailure, RankPool

    device = "cuda" if arguments.cuda else "cpu"
    surprises = 0
    with RankPool(arguments.world_size, device=device) as ranks:
        for name in _names(arguments):
            try:
                surprises += _screen_one(ranks, name, arguments)
            except RankFailure as failure:
                surprises += 1
                print(f"{name}: {failure}", flush=True)
    print(f"{len(_names(arguments))} problems screened, {surprises} surprises")
    return 1 if surprises else 0


def _screen_one(ranks: RankPool, name: str, arguments: argparse.Namespace) -> int:
    """Print what is found of one problem; return how many findings are not as they should be."""
    from problems.audit.health import merged
    from problems.audit.screen import screen

    given = {"profile": arguments.profile, "size": arguments.size}
    secrets = (f"screen {number}".encode() for number in range(arguments.secrets))
    findings = merged([screen(ranks, name, secret=secret, **given) for secret in secrets])
    for finding in findings:
        errors = ", ".join(
            f"{dtype} {error:.3g} (rms {finding.rms_errors[dtype]:.3g})"
            for dtype, error in finding.errors.items()
        )
        verb = "accepts" if finding.accepted else "rejects"
        why = "" if finding.as_it_should_be else f" ({finding.why})"
        if arguments.errors:
            print(f"{name} {verb} {finding.answer}: {errors or finding.why}{why}", flush=True)
        elif why:
            print(f"{name} {verb} {finding.answer}{why}", flush=True)
    return sum(not finding.as_it_should_be for finding in findings)


def _audit(arguments: argparse.Namespace) -> int:
    """Screen and store; return 1 when a scored problem errs under `hardened`, or any fails."""
    from problems.audit import health

    erring = _audit_checks(arguments)
    if arguments.profile is None:
        erring += _audit_work(_names(arguments))
    print(f"wrote {health.PATH}; {erring} problems err")
    return 1 if erring else 0


def _audit_checks(arguments: argparse.Namespace) -> int:
    """Screen and store; return how many problems err."""
    from problems.audit import health
    from problems.running.ranks import RankFailure

    erring = 0
    where = {"cuda": arguments.cuda, "is_shared": arguments.shared, "size": arguments.size}
    for plan in health.plans(arguments.seeds, arguments.honest_seeds, **where):
        if arguments.profile not in (None, plan.profile):
            continue
        for slug, found in health.audit(_names(arguments), plan, arguments.jobs):
            if isinstance(found, RankFailure):
                wrong, said = True, str(found)
            else:
                health.store(slug, found)
                surprises = [f for f in found.findings if not f.as_it_should_be]
                said = "; ".join(f"{f.answer}: {f.why}" for f in surprises) or "as it should be"
                scored = problems.load(problems.find(slug)).problem.scored
                wrong = bool(surprises) and scored and plan.profile == "hardened"
            erring += wrong
            print(f"{slug} {plan.key}: {said}", flush=True)
    return erring


def _audit_work(names: Sequence[str]) -> int:
    """Measure, store and print the work of timed calls; return how many problems fail."""
    from problems import timed_work
    from problems.audit.measured_work import measured
    from problems.running.ranks import RankFailure

    failed = 0
    for slug, found in measured(names):
        if isinstance(found, RankFailure):
            failed += 1
            print(f"{slug}: {found}", flush=True)
        else:
            timed_work.store(slug, found)
            print(f"{slug}: a timed call needs {found:.2f} of cost on average", flush=True)
    return failed


def _export(arguments: argparse.Namespace) -> int:
    from problems.catalogue import PATH, catalogue, write

    write(catalogue())
    print(f"wrote {PATH}")
    return 0


def _prompt(arguments: argparse.Namespace) -> int:
    from problems.catalogue import told

    problem = told(problems.load(problems.find(arguments.problem)))
    hardware = class_called(arguments.hardware)
    text = problem_text(hardware, problem)
    if text is None:
        raise ValueError(f"{problem['slug']} does not run on {hardware.ranks} ranks")
    fitting = [ranks for ranks in problem["world_sizes"] if ranks <= hardware.ranks]
    asked = {name: getattr(arguments, name) for name in ("backend", "dtype", "size")}
    ranks = arguments.world_size or max(fitting)
    text = (
        f"{text} {environment_text(of_release(hardware.device, hardware.title), arguments.backend)}"
    )
    print(f"{prompt(problem, hardware_text=text, world_size=ranks, **asked)}{FENCED}", end="")
    return 0


COMMANDS = {
    "list": _list,
    "new": _new,
    "check": _check,
    "screen": _screen,
    "audit": _audit,
    "export": _export,
    "prompt": _prompt,
}

if __name__ == "__main__":
    sys.exit(main())
