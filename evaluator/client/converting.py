"""Turns what other harnesses leave into an archive that a site takes in."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import (
    agent_logs,
    completions,
    inspect_logs,
    kernelbench_runs,
    pkb_folders,
    recorded,
)
from .attempts import Attempt, archive
from .console import say, say_json
from .failures import OK, Misused
from .reading import write_new
from .recorded import Wanted

AGENTIC, REPEATED, ZERO_SHOT = "agentic", "repeated", "zero-shot"
_KINDS = (
    "Name a .jsonl of answers, a log of Inspect, *.traj.json of mini-swe-agent, a run of"
    " KernelBench or verifiers, solutions_… of PKB's generator, or the folder that holds"
    " logs/kernelgen_agent of its agent."
)
Found = tuple[list[Attempt], dict[str, Any]]


def convert(arguments: Namespace) -> int:
    """Write an archive of what files and folders hold; folders of one answer a problem are
    attempts 1, 2, 3 in the order given."""
    made: list[Attempt] = []
    told: dict[str, Any] = {}
    for found, says in _everything(arguments):
        _check_model(told, says, arguments.model)
        made += found
        told = {**says, **{name: value for name, value in told.items() if value is not None}}
    if not made:
        raise Misused("There is no kernel in it.", _KINDS)
    _check_once(made)
    if arguments.model:
        told["model"] = arguments.model
    if not told.get("model"):
        raise Misused("Nothing there says which model wrote them.", "Give --model.")
    told["harness"] = arguments.harness or told.get("harness") or _harness(made)
    backends = {each.backend for each in made}
    told["backend"] = backends.pop() if len(backends) == 1 else None
    data = archive(made, told)
    path: Path = arguments.output or Path(f"{_file_name(told['model'])}.tar.gz")
    write_new(path, data)
    return _said(path, made, told, as_json=arguments.json)


def _everything(arguments: Namespace) -> Iterator[Found]:
    """Yield the attempts of each file and folder, and what it says of them all."""
    wanted = Wanted(*(getattr(arguments, name) for name in Wanted._fields))
    given = [path.resolve() for path in arguments.paths]
    trajectories = [one for path in given for one in _trajectories(path)]
    rest = [path for path in given if path not in trajectories]
    if trajectories:
        folders = [path for path in rest if path.is_dir()]
        roots = [path for path in folders if pkb_folders.trees(path)]
        found, told = agent_logs.of_trajectories(trajectories, roots, wanted)
        yield found, {**told, "harness": AGENTIC}
        rest = [path for path in rest if path not in folders]
    for number, path in enumerate(rest, start=1):
        if path.is_dir():
            yield _of_folder(path, number, arguments, wanted)
        elif path.suffix.lower() in (".jsonl", ".eval", ".json"):
            reader = completions if path.suffix.lower() == ".jsonl" else inspect_logs
            told_there = reader.read(path, wanted)
            yield recorded.attempts(told_there, wanted), told_there.manifest
        else:
            raise Misused(f"{path} is none that can be converted.", _KINDS)


def _trajectories(path: Path) -> list[Path]:
    """Return mini-swe-agent's trajectories at or below a path; those in PKB's logs are read with
    what lies beside them."""
    if path.name.endswith(agent_logs.SUFFIX):
        return [path]
    if not path.is_dir() or (path / agent_logs.LOGS).is_dir():
        return []
    return sorted(path.rglob(f"*{agent_logs.SUFFIX}"))


def _of_folder(path: Path, number: int, arguments: Namespace, wanted: Wanted) -> Found:
    if (path / agent_logs.LOGS).is_dir():
        found, told = agent_logs.attempts(path, number, arguments.model)
        return found, {**told, "harness": AGENTIC}
    if kernelbench_runs.is_run(path):
        return kernelbench_runs.attempts(path, wanted)
    for name in ("results.jsonl", "traces.jsonl"):  # a run of verifiers
        if (path / name).is_file():
            told_there = completions.read(path / name, wanted)
            return recorded.attempts(told_there, wanted), told_there.manifest
    trees = pkb_folders.trees(path)
    if not trees:
        raise Misused(
            f"{path} has no folder of kernels, and nothing else that can be converted.", _KINDS
        )
    says = [pkb_folders.told(tree) for tree in trees]
    for each in says[1:]:
        _check_model(says[0], each, arguments.model)
    if not all(says) and arguments.harness is None:
        fix = (
            "Give --harness. Kernels of PKB's agent are agentic: with --trajectory, name its"
            f" *{agent_logs.SUFFIX} as well."
        )
        raise Misused(f"{path} does not say how its kernels were asked for.", fix)
    return [one for tree in trees for one in pkb_folders.attempts(tree, number)], says[0]


def _check_model(told: dict[str, Any], says: dict[str, Any], wanted: str | None) -> None:
    models = {each["model"] for each in (told, says) if each.get("model")}
    if len(models) > 1 and wanted is None:
        fix = "Kernels of several models are several submissions: convert them apart."
        raise Misused(f"The folders are of several models: {', '.join(sorted(models))}.", fix)


def _check_once(made: list[Attempt]) -> None:
    places = Counter((each.problem.folder, each.number) for each in made)
    folder, number = places.most_common(1)[0][0]
    if places[folder, number] > 1:
        fix = "Name each folder by itself: they are attempts 1, 2, 3 in the order given."
        raise Misused(f"{folder} occurs more than once in attempt {number}.", fix)


def _harness(made: list[Attempt]) -> str:
    return REPEATED if any(each.number > 1 for each in made) else ZERO_SHOT


def _file_name(model: str) -> str:
    return "".join(char if char.isalnum() or char in "-." else "_" for char in model).strip(".")


def _said(path: Path, made: list[Attempt], told: dict[str, Any], *, as_json: bool) -> int:
    empty = sum(not each.source.strip() for each in made)
    if as_json:
        shown = {name: told[name] for name in ("model", "harness")}
        say_json({"path": str(path), "attempts": len(made), "without_kernel": empty, **shown})
        return OK
    say(f"{path}: {len(made)} attempts of {told['model']}, {empty} without a kernel")
    say(f"next: pkb submit {path} --harness {told['harness']} --model {shlex.quote(told['model'])}")
    return OK
