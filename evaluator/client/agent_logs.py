"""Reads what mini-swe-agent leaves: its trajectories, and the logs and kernels of PKB's
`generate_kernel_agent.py`, which runs it.

`solutions_<backend>/<number>_<slug>_<backend>.py` is what the last run at a problem wrote;
`logs/kernelgen_agent/<time>_miniswe_<number>_<slug>_<backend>/` has `meta.json`, in which a key may
stand in clear, and `miniswe_agent.traj.json`.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ..messages.answers import find_kernel
from . import pkb_folders
from .attempts import Attempt, Used
from .catalogue import Problem, problem_called
from .console import note
from .failures import Misused
from .recorded import Wanted, added, an_object, message_of, raise_all, tokens_of, well_formed
from .sources import named, read

SUFFIX = ".traj.json"
# How PKB's task calls the file that is to be written.
_ASKED = re.compile(r"solutions_[a-z]{1,16}/\d{1,4}_[a-z]\w{0,80}\.py", re.ASCII)
_NO_PROBLEM = "no problem is named; give --problem, or call it 13_gemm_allreduce.traj.json"
_ADDRESSES = ("api_base", "base_url")
LOGS = Path("logs") / "kernelgen_agent"
META, TRAJECTORY = "meta.json", "miniswe_agent.traj.json"
_KEY_NAMES = ("api_key", "apikey", "authorization", "password", "secret", "access_token")
_ENDED = {
    "submitted": "done",
    "timeexceeded": "budget_hours",
    "contextwindowexceedederror": "context",
}


class Log(NamedTuple):
    """Holds the log of one run of the agent. `name` is what its kernel is called in a tree."""

    problem: Problem
    backend: str
    name: str
    meta: dict[str, Any]
    trajectory: dict[str, Any]

    @property
    def model(self) -> str:
        """Return the model's name, without those of who serves it."""
        return str(self.meta.get("model", "")).rpartition("/")[2]

    @property
    def has_stopped(self) -> bool:
        """Return True if a limit or an error ended the run, so that no kernel need be there."""
        return str(self.info.get("exit_status") or "").lower() != "submitted"

    @property
    def info(self) -> dict[str, Any]:
        """Return what the trajectory says of the run as a whole."""
        return an_object(self.trajectory.get("info"))


def attempts(root: Path, number: int, model: str | None) -> tuple[list[Attempt], dict[str, Any]]:
    """Return the last run at each problem, of one model, and what a manifest says of them all.

    Raises Misused where logs are of several models and `model` chooses none.
    """
    logs = {(log.problem.slug, log.backend): log for log in _logs(root / LOGS)}
    models = sorted({log.model for log in logs.values()})
    chosen = model if model in models else models[0] if len(models) == 1 else None
    if models and chosen is None:
        fix = "--model chooses one; each is a submission of its own."
        raise Misused(f"The last runs are of several models: {', '.join(models)}.", fix)
    files = _by_place(root.glob("solutions_*"))
    made = [
        _attempt(log, files.get(place), number)
        for place, log in logs.items()
        if log.model == chosen
    ]
    for place in sorted(files.keys() - logs.keys()):
        if len(models) > 1:
            note(f"left out, as no log says its model: {files[place].path}")
            continue
        source = pkb_folders.text_of(files[place].path)
        file = files[place]
        made.append(Attempt(file.problem, number, place[1], source, None, converted_from=file.name))
    own = [log for log in logs.values() if log.model == chosen]
    return made, _told(own[-1]) if own else {}


def _by_place(trees: Iterable[Path]) -> dict[tuple[str, str], pkb_folders.FoundKernel]:
    """Return the kernels of an agent's trees by problem and backend; a generator's say a model."""
    return {
        (found.problem.slug, found.backend): found
        for tree in trees
        if not pkb_folders.told(tree)
        for found in pkb_folders.kernels(tree)
    }


def of_trajectories(
    paths: Sequence[Path], roots: Sequence[Path], wanted: Wanted
) -> tuple[list[Attempt], dict[str, Any]]:
    """Return an attempt for each trajectory, and what a manifest says of them all.

    A kernel is the file that the task names, in a `solutions_<backend>` at or below `roots`, else
    the .py file next to its trajectory, else what the agent submitted. Raises Misused naming every
    trajectory that has none of these.
    """
    files = _by_place(tree for root in roots for tree in pkb_folders.trees(root))
    faults: list[str] = []
    counted: Counter[tuple[str, str]] = Counter()
    made, logs = [], []
    for path in paths:
        log, fault = _of_trajectory(path, wanted)
        if log is None:
            faults.append(f"{path}: {fault}")
            continue
        place = log.problem.slug, log.backend
        counted[place] += 1
        file = files.get(place)
        if file is not None and counted[place] > 1:
            faults.append(f"{path}: {file.path} is of one trajectory; name that one alone")
        source = None if file else _left(path, log)
        if source is None and not (file or roots or log.has_stopped):
            missing = f"solutions_{log.backend}"
            faults.append(f"{path}: its kernel is in no folder; name that of {missing}")
        logs.append(log)
        made.append(_attempt(log, file, counted[place], source))
    raise_all(faults)
    if len(models := sorted({log.model for log in logs})) > 1:
        fix = "Each is a submission of its own: convert them apart."
        raise Misused(f"The trajectories are of several models: {', '.join(models)}.", fix)
    for place in sorted(files.keys() - counted.keys()):
        note(f"left out, as no trajectory is named for it: {files[place].path}")
    return made, _told(logs[-1])


def _of_trajectory(path: Path, wanted: Wanted) -> tuple[Log | None, str]:
    """Return a trajectory as a log, or what it does not say."""
    steps = _read(path)
    config = an_object(an_object(steps.get("info")).get("config"))
    task = "\n".join(message_of(each)["text"] for each in _turns(steps)[:2])
    asked = set() if wanted.problem else {*_ASKED.findall(task)}
    name = asked.pop() if len(asked) == 1 else ""
    said = named(PurePosixPath(name or f"{wanted.problem or path.name[: -len(SUFFIX)]}.py"))
    if said is None:
        return None, _NO_PROBLEM
    backend = said.backend or wanted.backend
    if backend is None:
        return None, "no backend is named; give --backend"
    try:
        problem = pkb_folders.today(said) if name else problem_called(said.problem)
    except Misused:
        return None, _NO_PROBLEM
    return Log(problem, backend, name, _meta(config), steps), ""


def _meta(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a trajectory's configuration what PKB's logs say beside it."""
    model, agent = (an_object(config.get(part)) for part in ("model", "agent"))
    given = an_object(model.get("model_kwargs"))
    return {
        "model": str(model.get("model_name") or ""),
        "cost_limit": agent.get("cost_limit") or None,
        "step_limit": agent.get("step_limit"),
        "is_own_server": any(name in given for name in _ADDRESSES),
    }


def _turns(trajectory: Mapping[str, Any]) -> list[dict[str, Any]]:
    turns = trajectory.get("messages")
    return [one for one in turns if isinstance(one, dict)] if isinstance(turns, list) else []


def _left(path: Path, log: Log) -> bytes | None:
    """Return the kernel next to a trajectory, or in what the agent submitted; None if neither is
    there."""
    beside = path.with_name(path.name[: -len(SUFFIX)] + ".py")
    if beside.is_file():
        return pkb_folders.text_of(beside)
    found = find_kernel(well_formed(str(log.info.get("submission") or "")))
    return found.encode() if found is not None else None


def _logs(folder: Path) -> Iterator[Log]:
    """Yield the logs, older ones first, as their names begin with the time."""
    for path in sorted(folder.glob(f"*_miniswe_*/{META}")):
        meta = _read(path)
        backend = str(meta.get("backend", ""))
        name = f"{meta.get('problem_id')}_{backend}.py"
        said = named(PurePosixPath(name))
        if said is None or said.backend is None or said.number is None:
            raise Misused(f"{path} does not say the problem and the backend.", f"Remove {path}.")
        trajectory = path.with_name(TRAJECTORY)
        steps = _read(trajectory) if trajectory.is_file() else {}
        name = f"solutions_{backend}/{name}"
        yield Log(pkb_folders.today(said), said.backend, name, meta, steps)


def _read(path: Path) -> dict[str, Any]:
    try:
        return an_object(json.loads(read(path, 256 << 20)))
    except (ValueError, RecursionError):
        raise Misused(f"{path} is no JSON.", "Was its run interrupted? Remove it.") from None


def _attempt(
    log: Log, file: pkb_folders.FoundKernel | None, number: int, source: bytes | None = None
) -> Attempt:
    if source is None:
        source = pkb_folders.text_of(file.path) if file else b""
    turns = _turns(log.trajectory)
    messages = [message_of(each) for each in turns]
    asked = [each["text"] for each in messages[:2] if each["role"] in ("system", "user")]
    return Attempt(
        problem=log.problem,
        number=number,
        backend=log.backend,
        source=source,
        ended=_ended(log, source),
        used=_used(log, turns),
        prompt="\n\n".join(asked) or None,
        messages=messages,
        converted_from=file.name if file else log.name or None,
        secrets=tuple(_secrets(log)),
    )


def _ended(log: Log, source: bytes) -> str:
    status = str(log.info.get("exit_status") or "").lower()
    if status == "limitsexceeded":
        limit, cost = log.meta.get("cost_limit"), _cost(log)
        is_spent = isinstance(limit, (int, float)) and cost is not None and 0 < limit <= cost
        return "budget_usd" if is_spent else "steps"
    ended = _ENDED.get(status, "unfinished")
    return "no_answer" if ended == "done" and not source.strip() else ended


def _used(log: Log, turns: list[dict[str, Any]]) -> Used:
    calls = an_object(log.info.get("model_stats")).get("api_calls")
    replies = [
        an_object(an_object(each.get("extra")).get("response"))
        for each in turns
        if each.get("role") == "assistant"
    ]
    counts = [found for reply in replies if (found := tokens_of(reply.get("usage")))]
    usage = added(counts)
    answers = calls if isinstance(calls, int) and calls >= 0 else len(replies)
    served = [reply["model"] for reply in replies if isinstance(reply.get("model"), str)]
    return Used(
        usage=usage,
        answers=answers,
        answers_without_usage=max(0, answers - len(counts)),
        cost_usd=_cost(log),
        wall_s=_wall_s(log.meta),
        served_by=served[-1] if served else None,
    )


def _cost(log: Log) -> float | None:
    cost = an_object(log.info.get("model_stats")).get("instance_cost")
    return round(float(cost), 6) if isinstance(cost, (int, float)) and cost >= 0 else None


def _wall_s(meta: Mapping[str, Any]) -> float | None:
    try:
        began, ended = (
            datetime.datetime.fromisoformat(str(meta.get(name)))
            for name in ("started_at", "finished_at")
        )
    except ValueError:
        return None
    return max(0.0, (ended - began).total_seconds())


def _secrets(log: Log) -> Iterator[str]:
    """Yield the keys that the logs hold in clear: of the command, and of the configuration."""
    arguments = [str(each) for each in log.meta.get("argv") or ()]
    for at, each in enumerate(arguments):
        name, _, value = each.partition("=")
        if name.startswith("--") and name.endswith("-key"):
            yield value or "".join(arguments[at + 1 : at + 2])
    todo: list[Any] = [log.info]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            names = ((str(name).lower(), each) for name, each in value.items())
            yield from (each for name, each in names if name in _KEY_NAMES and _is_text(each))
        todo += value.values() if isinstance(value, dict) else value if _is_list(value) else ()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _told(log: Log) -> dict[str, Any]:
    version = log.info.get("mini_version")
    server = str(log.meta.get("model", "")).rpartition("/")[0].partition("/")[0]
    limits = {"steps": log.meta.get("step_limit") or None, "usd": log.meta.get("cost_limit")}
    return {
        "model": log.model,
        "provider": None if log.meta.get("is_own_server") else server or None,
        "harness_version": f"mini-swe-agent {version}" if version else "mini-swe-agent",
        "backend": log.backend,
        "budget": limits,
    }
