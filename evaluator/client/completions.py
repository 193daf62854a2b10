"""Reads answers that lie as JSON, one a line.

The general form is `{"problem": 13, "sample": 1, "completion": "..."}`, which any harness can
write; `results.jsonl` and `traces.jsonl` are rollouts of the package verifiers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .attempts import Used
from .failures import Misused
from .recorded import (
    CUT_OFF,
    Recorded,
    Told,
    Wanted,
    added,
    an_object,
    asked_in,
    calls_tools,
    field_of,
    message_of,
    number_of,
    samplings,
    text_of,
    tokens_of,
)

METADATA = "metadata.json"
AGENTIC = "agentic"


def read(path: Path, wanted: Wanted) -> Told:
    """Return the answers of a file. Raises Misused."""
    answers, faults, models = [], [], []
    manifest: dict[str, Any] = {}
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        where = f"{path}:{number}"
        try:
            record = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            raise Misused(f"{where} is no JSON.") from None
        if record is None:
            continue
        found = list(_of_line(an_object(record), where, wanted))
        if not found:
            faults.append(f"{where}: {_fault_of(an_object(record))}")
        models += [an_object(record).get("model"), *(_model(each) for each in _traces(record))]
        answers += found
    manifest = _of_verifiers(path.with_name(METADATA)) if path.name == "results.jsonl" else {}
    told = [model for model in models if isinstance(model, str) and model]
    if len(set(told)) > 1:
        fix = "Answers of several models are several submissions: split the file."
        raise Misused(f"{path} is of several models: {', '.join(sorted(set(told)))}.", fix)
    if any(calls_tools(each.messages) for each in answers):
        manifest["harness"] = AGENTIC
    return Told(answers, {**manifest, **({"model": told[0]} if told else {})}, faults)


def _fault_of(record: dict[str, Any]) -> str:
    """Return why a line holds no answer."""
    if isinstance(record.get("completion"), str):
        return "no `sample`; it is a whole number, from 0 or from 1"
    return "neither problem, sample and completion, nor a rollout of verifiers"


def _of_line(record: dict[str, Any], where: str, wanted: Wanted) -> Iterator[Recorded]:
    if isinstance(record.get("traces"), list):
        for trace in _traces(record):
            yield _of_trace(trace, record, where, wanted)
    elif isinstance(record.get("completion"), list):
        yield _of_rollout(record, where, wanted)
    elif isinstance(record.get("completion"), str) and type(record.get("sample")) is int:
        yield _of_general(record, where, wanted)


def _of_general(record: dict[str, Any], where: str, wanted: Wanted) -> Recorded:
    finish = record.get("finish")
    prompt = record.get("prompt")
    return Recorded(
        where=where,
        problem=field_of(record, wanted.problem_field or "problem"),
        sample=record["sample"],
        text=record["completion"],
        backend=record.get("backend"),
        is_cut=finish in CUT_OFF,
        prompt=prompt if isinstance(prompt, str) else None,
        messages=[
            *([{"role": "user", "text": prompt, "calls": []}] if isinstance(prompt, str) else []),
            {"role": "assistant", "text": record["completion"], "calls": []},
        ],
        used=Used(
            usage=tokens_of(record.get("usage")),
            answers=1,
            answers_without_usage=int(tokens_of(record.get("usage")) is None),
            cost_usd=number_of(record.get("cost_usd")),
            wall_s=number_of(record.get("wall_s")),
            finish=finish if isinstance(finish, str) else None,
        ),
    )


def _of_rollout(record: dict[str, Any], where: str, wanted: Wanted) -> Recorded:
    """Return a rollout as verifiers up to 0.1 writes it."""
    asked = record.get("prompt")
    given = asked if isinstance(asked, list) else [{"role": "user", "content": asked}]
    messages = [message_of(an_object(each)) for each in given]
    said = [message_of(an_object(each)) for each in record["completion"]]
    answers = [each for each in said if each["role"] == "assistant"]
    usage = tokens_of(record.get("token_usage"))
    is_cut = record.get("is_truncated") is True
    return Recorded(
        where=where,
        problem=field_of(record, wanted.problem_field or "info.problem"),
        text=answers[-1]["text"] if answers else None,
        backend=field_of(record, "info.backend"),
        is_cut=is_cut,
        ended="unfinished" if record.get("error") else None,
        prompt=asked_in(messages),
        messages=[*messages, *said],
        used=Used(
            usage=usage,
            answers=len(answers),
            answers_without_usage=0 if usage else len(answers),
            wall_s=number_of(field_of(record, "timing.generation.duration")),
        ),
    )


def _of_trace(
    trace: dict[str, Any], record: dict[str, Any], where: str, wanted: Wanted
) -> Recorded:
    """Return an agent's trace of an episode, as verifiers writes it since 0.2."""
    nodes = [an_object(node) for node in trace.get("nodes") or ()]
    messages = [message_of(an_object(node.get("message"))) for node in nodes]
    answers = [each for each in messages if each["role"] == "assistant"]
    calls = [an_object(call) for call in trace.get("calls") or ()]
    counts = [tokens_of(call.get("usage")) for call in calls]
    finish = calls[-1].get("finish_reason") if calls else None
    models = [call["model"] for call in calls if isinstance(call.get("model"), str)]
    return Recorded(
        where=where,
        problem=_name_of(record, wanted),
        text=answers[-1]["text"] if answers else None,
        backend=field_of(record, "task.data.backend"),
        is_cut=finish in CUT_OFF,
        ended="unfinished" if trace.get("errors") else None,
        prompt=asked_in(messages),
        messages=messages,
        used=Used(
            usage=added(counts),
            answers=len(calls),
            answers_without_usage=counts.count(None),
            finish=finish if isinstance(finish, str) else None,
            served_by=models[-1] if models else None,
        ),
    )


def _name_of(record: dict[str, Any], wanted: Wanted) -> object:
    """Return the problem of an episode: by the field that is named, else the task's own words.
    Whole numbers are places in a list, so they name no problem."""
    if wanted.problem_field:
        return field_of(record, wanted.problem_field)
    names = [field_of(record, f"task.data.{name}") for name in ("problem", "id", "name")]
    return next((n for n in names if isinstance(n, str) and not n.isdigit()), None)


def _traces(record: object) -> list[dict[str, Any]]:
    traces = an_object(record).get("traces")
    return [an_object(each) for each in traces] if isinstance(traces, list) else []


def _model(trace: dict[str, Any]) -> object:
    return field_of(trace, "agent.config.model") or next(
        (call.get("model") for call in trace.get("calls") or () if isinstance(call, dict)), None
    )


def _of_verifiers(metadata: Path) -> dict[str, Any]:
    """Return the contents of the file beside a run's results."""
    if not metadata.is_file():
        return {}
    try:
        told = an_object(json.loads(text_of(metadata)))
    except (ValueError, RecursionError):
        raise Misused(f"{metadata} is no JSON.") from None
    version = field_of(told, "version_info.vf_version")
    return {
        "model": told.get("model"),
        "harness_version": f"verifiers {version}" if version else "verifiers",
        "sampling": samplings(an_object(told.get("sampling_args"))),
    }
