"""Turns what other harnesses leave into an archive that a site takes in."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

from . import agent_logs, pkb_folders
from .attempts import Attempt, archive
from .console import say, say_json
from .failures import OK, Misused
from .reading import write_new

AGENTIC, REPEATED, ZERO_SHOT = "agentic", "repeated", "zero-shot"
_KINDS = (
    "Name solutions_<backend>_<precision>_<hardware>_<provider>_<model>, a folder of them, or for"
    " an agent's the folder that holds solutions_<backend> and logs/kernelgen_agent."
)


def convert(arguments: Namespace) -> int:
    """Write an archive of what folders hold, each folder an attempt after those before it."""
    made: list[Attempt] = []
    told: dict[str, Any] = {}
    for number, folder in enumerate(arguments.folders, start=1):
        found, says = _read(folder.resolve(), number, arguments.model)
        _check_model(told, says, arguments.model)
        made += found
        told = {**says, **told}
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


def _read(folder: Path, number: int, model: str | None) -> tuple[list[Attempt], dict[str, Any]]:
    if not folder.is_dir():
        raise Misused(f"{folder} is no folder.", _KINDS)
    if (folder / agent_logs.LOGS).is_dir():
        found, told = agent_logs.attempts(folder, number, model)
        return found, {**told, "harness": AGENTIC}
    trees = pkb_folders.trees(folder)
    if not trees:
        raise Misused(f"{folder} has no folder of kernels.", _KINDS)
    says = [pkb_folders.told(tree) for tree in trees]
    for each in says[1:]:
        _check_model(says[0], each, model)
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
