"""Reads what `generate_kernel_agent.py` of PKB leaves: kernels, and mini-swe-agent's logs of them.

`solutions_<backend>/<number>_<slug>_<backend>.py` is what the last run at a problem wrote;
`logs/kernelgen_agent/<time>_miniswe_<number>_<slug>_<backend>/` has `meta.json`, in which a key may
stand in clear, and `miniswe_agent.traj.json`.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from . import pkb_folders
from .attempts import Attempt, Used
from .catalogue import Problem
from .console import note
from .failures import Misused
from .sources import named, read

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
    def info(self) -> dict[str, Any]:
        """Return what the trajectory says of the run as a whole."""
        return _object(self.trajectory.get("info"))


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
    files = {
        (found.problem.slug, found.backend): found
        for tree in root.glob("solutions_*")
        for found in pkb_folders.kernels(tree)
        if not pkb_folders.told(tree)
    }
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
        return _object(json.loads(read(path, 256 << 20)))
    except (ValueError, RecursionError):
        raise Misused(f"{path} is no JSON.", "Was its run interrupted? Remove it.") from None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _attempt(log: Log, file: pkb_folders.FoundKernel | None, number: int) -> Attempt:
    source = pkb_folders.text_of(file.path) if file else b""
    turns = [each for each in log.trajectory.get("messages", ()) if isinstance(each, dict)]
    messages = [_message(each) for each in turns]
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
        converted_from=file.name if file else log.name,
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
    calls = _object(log.info.get("model_stats")).get("api_calls")
    replies = [
        _object(_object(each.get("extra")).get("response"))
        for each in turns
        if each.get("role") == "assistant"
    ]
    counts = [found for reply in replies if (found := _tokens(_object(reply.get("usage"))))]
    usage = {name: sum(each[name] for each in counts) for name in counts[0]} if counts else None
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


def _tokens(usage: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the tokens of an answer, by the names of the format; None where they are not told."""
    into = _object(usage.get("prompt_tokens_details"))
    out = _object(usage.get("completion_tokens_details"))
    told = {
        "input": usage.get("prompt_tokens"),
        "cached": into.get("cached_tokens") or 0,
        "output": usage.get("completion_tokens"),
        "reasoning": out.get("reasoning_tokens") or 0,
    }
    counts = {name: each for name, each in told.items() if isinstance(each, int) and each >= 0}
    return counts if counts.keys() == told.keys() else None


def _cost(log: Log) -> float | None:
    cost = _object(log.info.get("model_stats")).get("instance_cost")
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


def _message(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return a turn with its role, its text and its tool calls; nothing else of it is kept."""
    content = turn.get("content")
    if isinstance(content, list):
        content = "\n".join(str(_object(part).get("text", "")) for part in content)
    calls = [_object(call) for call in turn.get("tool_calls") or () if isinstance(call, dict)]
    return {
        "role": str(turn.get("role", "")),
        "text": "" if content is None else str(content),
        "calls": [
            {
                "id": str(call.get("id", "")),
                "name": str(_object(call.get("function")).get("name", "")),
                "arguments": str(_object(call.get("function")).get("arguments", "")),
            }
            for call in calls
        ],
        "call_id": turn.get("tool_call_id"),
    }


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
        "provider": server or None,
        "harness_version": f"mini-swe-agent {version}" if version else "mini-swe-agent",
        "backend": log.backend,
        "budget": limits,
    }
