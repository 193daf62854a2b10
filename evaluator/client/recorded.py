"""Makes attempts of answers that other harnesses recorded, with `generate`'s own extraction.

What a recording does not say is asked for: every missing problem, backend or sample is named in one
error, and nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..messages.answers import find_kernel
from .attempts import Attempt, Used
from .catalogue import BACKENDS, Problem, problem_called
from .failures import Misused
from .sources import backend_called, read

MAX_RECORDING_BYTES = 512 << 20
MAX_ATTEMPT = 100  # that a site takes
MOST_NAMED = 12  # faults in one error
_BY_TOOLS = (
    "the model used tools and its last answer has no kernel, so the kernel cannot be told; write "
    "one line of JSON for each attempt with its `completion`, empty if there is none"
)
CUT_OFF = ("length", "max_tokens")
# Tokens that are no part of the prompt's: read from a cache (by verifiers, by Inspect), written.
_BESIDES = ("cached_input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")


class Wanted(NamedTuple):
    """Holds what the caller says where recordings do not. `problem_field` is the path of the field
    that names a problem, as `metadata.task`."""

    problem: str | None = None
    backend: str | None = None
    problem_field: str | None = None
    level: int | None = None


class Recorded(NamedTuple):
    """Holds one recorded answer. `sample` counts from 0 or from 1, None if the order counts; `text`
    is None where there was no answer."""

    where: str
    problem: object
    text: str | None
    sample: int | None = None
    backend: object = None
    is_cut: bool = False
    ended: str | None = None
    used: Used = Used()
    prompt: str | None = None
    messages: Sequence[Mapping[str, Any]] = ()
    secrets: tuple[str, ...] = ()


class Told(NamedTuple):
    """Holds recorded answers, what a manifest says of them all, and what is wrong with others."""

    answers: list[Recorded]
    manifest: dict[str, Any]
    faults: Sequence[str] = ()


def attempts(told: Told, wanted: Wanted) -> list[Attempt]:
    """Return an attempt for each answer. Raises Misused naming all that is missing."""
    answers, faults = told.answers, [*told.faults]
    samples = [each.sample for each in answers if each.sample is not None]
    shift = 1 if samples and min(samples) == 0 else 0
    taken: dict[str, int] = {}
    made = []
    for each in answers:
        problem, said = _problem(each, wanted)
        backend = backend_called(str(each.backend or wanted.backend or "")) or ""
        if problem is None:
            faults.append(f"{each.where}: {said}")
        if backend not in BACKENDS:
            faults.append(f"{each.where}: no backend is named; give --backend")
        if problem is None or faults:
            continue
        taken[problem.slug] = taken.get(problem.slug, 0) + 1
        number = taken[problem.slug] if each.sample is None else each.sample + shift
        if not 1 <= number <= MAX_ATTEMPT:
            faults.append(f"{each.where}: {number} is no attempt from 1 to {MAX_ATTEMPT}")
        if calls_tools(each.messages) and find_kernel(well_formed(each.text or "")) is None:
            faults.append(f"{each.where}: {_BY_TOOLS}")
        made.append(_attempt(each, problem, number, backend))
    raise_all(faults)
    return made


def raise_all(faults: Sequence[str]) -> None:
    """Raise Misused naming faults, if there are any; of many the first."""
    if faults:
        rest = len(faults) - MOST_NAMED
        more = [f"and {rest} more"] if rest > 0 else []
        count = f"{len(faults)} things are" if len(faults) > 1 else "Something is"
        lines = "\n  ".join([*faults[:MOST_NAMED], *more])
        raise Misused(f"{count} not said, and not guessed.", lines)


def _problem(one: Recorded, wanted: Wanted) -> tuple[Problem | None, str]:
    """Return the problem, or why there is none."""
    name = wanted.problem or one.problem
    if name is None or name == "" or isinstance(name, (bool, float, list, dict)):
        return None, "no problem is named; give --problem or --problem-field"
    try:
        return problem_called(str(name)), ""
    except Misused as error:
        return None, f"{error.message} {error.fix}"


def _attempt(one: Recorded, problem: Problem, number: int, backend: str) -> Attempt:
    source = find_kernel(well_formed(one.text), is_cut=one.is_cut) if one.text else None
    ended = one.ended or ("cut_off" if one.is_cut else "answered" if source else "no_answer")
    return Attempt(
        problem=problem,
        number=number,
        backend=backend,
        source=(source or "").encode(),
        ended="no_answer" if ended == "done" and not source else ended,
        used=one.used,
        prompt=one.prompt,
        messages=one.messages,
        secrets=one.secrets,
    )


def well_formed(text: str) -> str:
    """Return a text without halves of characters, which JSON may hold and no file can."""
    return text.encode(errors="replace").decode()


def text_of(path: Path) -> str:
    """Return a recording's text. Raises Misused."""
    try:
        return read(path, MAX_RECORDING_BYTES).decode()
    except UnicodeDecodeError as error:
        raise Misused(f"{path} is not UTF-8 (byte {error.start}).") from None


def field_of(record: object, path: str) -> Any:
    """Return the value at a path such as `info.problem`; None where there is none."""
    for name in path.split("."):
        record = record.get(name) if isinstance(record, dict) else None
    return record


def an_object(value: object) -> dict[str, Any]:
    """Return an object of JSON, an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def number_of(value: object) -> float | None:
    """Return a number that counts or measures; None for any other value."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and 0 <= value < 1e12 else None  # type: ignore[operator,return-value]


def words_of(content: object) -> str:
    """Return the text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else an_object(part).get("text") for part in content]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def message_of(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return a turn with its role, its text and its tool calls; nothing else of it is kept."""
    calls = turn.get("tool_calls")
    return {
        "role": str(turn.get("role", "")),
        "text": words_of(turn.get("content")),
        "calls": [_call_of(each) for each in calls] if isinstance(calls, list) else [],
        "call_id": turn.get("tool_call_id"),
    }


def _call_of(value: object) -> dict[str, str]:
    call = an_object(value)
    named = an_object(call.get("function")) or call
    name = named.get("name") or call.get("function")
    return {
        "id": str(call.get("id", "")),
        "name": name if isinstance(name, str) else "",
        "arguments": str(named.get("arguments", "")),
    }


def asked_in(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the first prompt: the turns before the first answer."""
    first = []
    for each in messages:
        if each["role"] not in ("system", "user", "developer"):
            break
        first.append(str(each["text"]))
    return "\n\n".join(first) or None


def calls_tools(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if a model called tools in a conversation."""
    return any(each["calls"] for each in messages)


def tokens_of(told: object) -> dict[str, int] | None:
    """Return the tokens of an answer by the names of `pkb-attempts/1`; None if they are not told.

    Reads this format's own names, those of chat completions, where cached tokens are a part of the
    prompt, and those of verifiers and Inspect, which count them besides.
    """
    usage = an_object(told)
    into, out = (
        an_object(usage.get(f"{side}_tokens_details")) for side in ("prompt", "completion")
    )
    given = _first(usage, "input", "prompt_tokens", "input_tokens")
    made = _first(usage, "output", "completion_tokens", "output_tokens")
    if given is None or made is None:
        return None
    besides = [_first(usage, name) or 0 for name in _BESIDES]
    inside = _first(usage, "cached") or _first(into, "cached_tokens") or 0
    given += sum(besides)
    cached = besides[0] + besides[1] or inside
    reasoning = _first(usage, "reasoning", "reasoning_tokens") or _first(out, "reasoning_tokens")
    return {
        "input": given + cached if cached > given else given,
        "cached": cached,
        "output": max(made, reasoning or 0),
        "reasoning": reasoning or 0,
    }


def _first(values: Mapping[str, Any], *names: str) -> int | None:
    found = (number_of(values.get(name)) for name in names)
    return next((int(each) for each in found if each is not None), None)


def added(usages: Sequence[dict[str, int] | None]) -> dict[str, int] | None:
    """Return the sum of those tokens that are told; None if none are."""
    told = [each for each in usages if each is not None]
    return {name: sum(each[name] for each in told) for name in told[0]} if told else None


def samplings(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how answers were drawn, by the names of a manifest; None if nothing says it."""
    names = {
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "top_k": ("top_k",),
        "min_p": ("min_p",),
        "seed": ("seed",),
        "reasoning_effort": ("reasoning_effort",),
        "max_output_tokens": ("max_output_tokens", "max_completion_tokens", "max_tokens"),
    }
    given = {
        own: [told[name] for name in each if _is_plain(told.get(name))]
        for own, each in names.items()
    }
    return {own: each[0] for own, each in given.items() if each} or None


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)
