"""Defines the tools of an agent, and does what its calls ask. Their arguments are hostile."""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from evaluator.generate.attempt_loop import Course
from evaluator.generate.exchange import Tool, ToolCall
from evaluator.generate.judging import Practice
from evaluator.generate.plan import AGENTIC, Plan
from evaluator.generate.shell import MOST_COMMAND_BYTES
from evaluator.messages.answers import fault_of
from evaluator.messages.job import Dtype

MOST_DIFF_LINES = 1500
MOST_RESULT_CHARS = 64 << 10
MOST_ARGUMENT_CHARS = 1 << 20


class BadCall(Exception):
    """Says, to the model, what is wrong with a call."""


def _tool(name: str, description: str, required: str | None = None, **properties: Any) -> Tool:
    schema = {
        "type": "object",
        "properties": properties,
        "required": [required] if required else [],
        "additionalProperties": False,
    }
    return Tool(name=name, description=description, parameters=schema)


_TEXT, _WHOLE = {"type": "string"}, {"type": "integer"}
WRITE = _tool(
    "write",
    "Write the whole file of the kernel. Each call is a new step; the last one is what counts.",
    required="source",
    source={**_TEXT, "description": "the Python file that defines solution"},
)
JUDGE = _tool(
    "judge",
    "Have the last step judged: verdict, cause, error in tolerances, speedup, bound. What you "
    "leave out is as the ranked run will have it.",
    size={**_TEXT, "description": "tiny, standard or large"},
    dtype={**_TEXT, "enum": [str(dtype) for dtype in Dtype]},
    ranks={**_WHOLE, "description": "how many ranks"},
)
PROFILE = _tool(
    "profile", "Show the profile of the last step: per rank what took longest, overlap, idle time."
)
DIFF = _tool(
    "diff", "Show what changed from an earlier step to the last.", required="step", step=_WHOLE
)
READ = _tool(
    "read",
    "Read a text again.",
    required="topic",
    topic={**_TEXT, "description": "problem, symmetric_memory, backend, or step_1, step_2, ..."},
)
SHELL = _tool(
    "shell",
    "Run a command in a sandbox without network, in a fresh folder with the last step: kernel.py.",
    required="command",
    command={**_TEXT, "description": "for sh -c"},
)
DONE = _tool("done", "End: the last step is your answer.", note=_TEXT)
TOOLS = (WRITE, JUDGE, PROFILE, DIFF, READ, SHELL, DONE)
_OF_JUDGE = (JUDGE, PROFILE)


def tools_for(is_judged: bool, has_shell: bool) -> tuple[Tool, ...]:
    """Return the tools of a run, in the order a model is shown them."""
    left_out = (*(() if is_judged else _OF_JUDGE), *(() if has_shell else (SHELL,)))
    return tuple(tool for tool in TOOLS if tool not in left_out)


def tools_of(plan: Plan) -> tuple[Tool, ...]:
    """Return the tools that a plan's harness gives, none where it is one answer."""
    return tools_for(plan.is_judged, plan.shell) if plan.harness == AGENTIC else ()


def result_of(call: ToolCall, course: Course) -> str:
    """Do what a call asks and return its result; what is wrong with it is a result, too."""
    own = tools_for(course.task.is_judged, course.task.has_shell)
    known = {tool.name: tool for tool in own}
    try:
        if call.name not in known:
            raise BadCall(f"there is no such tool: use {', '.join(known)}")
        arguments = _arguments(call.arguments, known[call.name])
        return _DOERS[call.name](course, arguments)[:MOST_RESULT_CHARS]
    except BadCall as fault:
        return f"error: {fault}"


def _arguments(text: str, tool: Tool) -> dict[str, Any]:
    """Return the arguments of a call, of the names and types that its tool declares."""
    if len(text) > MOST_ARGUMENT_CHARS:
        raise BadCall("the arguments are too long")
    try:
        told = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise BadCall("the arguments are not JSON") from None
    if not isinstance(told, dict):
        raise BadCall("the arguments are not an object")
    properties: Mapping[str, Any] = tool.parameters["properties"]
    if unknown := set(told) - set(properties):
        raise BadCall(
            f"{len(unknown)} arguments are unknown: use {', '.join(properties) or 'none'}"
        )
    for name in tool.parameters["required"]:
        if name not in told:
            raise BadCall(f"{name} is missing")
    kinds = {"string": str, "integer": int}
    for name, value in told.items():
        if type(value) is not kinds[properties[name]["type"]]:
            raise BadCall(f"{name} must be of type {properties[name]['type']}")
    return told


def _write(course: Course, arguments: Mapping[str, Any]) -> str:
    source = arguments["source"].encode("utf-8", "replace").decode()
    if fault := fault_of(source):
        raise BadCall(f"nothing was written: {fault}")
    if len(course.steps) >= course.task.most_steps:
        raise BadCall("nothing was written: no step is left")
    course.write(source)
    return f"step {len(course.steps)} is written, {len(source.encode())} bytes"


def _judge(course: Course, arguments: Mapping[str, Any]) -> str:
    return course.try_kernel(_practice(course, arguments)).text


def _practice(course: Course, arguments: Mapping[str, Any]) -> Practice:
    """Return the setting that a model chose. Raises BadCall for what the problem lacks."""
    _last(course)
    own, allowed = course.task.practice, course.task.choices
    size = arguments.get("size", own.size)
    dtype = arguments.get("dtype", str(own.dtype))
    ranks = arguments.get("ranks", own.world_size)
    for name, value, some in (
        ("size", size, allowed.sizes),
        ("dtype", dtype, allowed.dtypes),
        ("ranks", ranks, allowed.world_sizes),
    ):
        if value not in some:
            raise BadCall(f"{name} must be one of {', '.join(map(str, some))}")
    return dataclasses.replace(own, size=size, dtype=Dtype(dtype), world_size=ranks)


def _profile(course: Course, _: Mapping[str, Any]) -> str:
    _last(course)
    return course.try_kernel(course.task.practice).profile


def _diff(course: Course, arguments: Mapping[str, Any]) -> str:
    last = _last(course)
    earlier, later = (text.splitlines() for text in (_step(course, arguments["step"]), last))
    if max(len(earlier), len(later)) > MOST_DIFF_LINES:
        raise BadCall(f"steps of more than {MOST_DIFF_LINES} lines are not compared")
    lines = difflib.unified_diff(earlier, later, f"step {arguments['step']}", "last", lineterm="")
    return "\n".join(lines) or "they are the same"


def _read(course: Course, arguments: Mapping[str, Any]) -> str:
    topic, topics = arguments["topic"], course.task.prompt.topics
    if topic in topics:
        return topics[topic]
    if step := re.fullmatch(r"step_(\d{1,6})", topic):
        return _step(course, int(step[1]))
    raise BadCall(f"there is no such topic: use {', '.join(topics)}, step_1, step_2, ...")


def _shell(course: Course, arguments: Mapping[str, Any]) -> str:
    command = arguments["command"].encode("utf-8", "replace").decode()
    if "\0" in command or len(command.encode()) > MOST_COMMAND_BYTES:
        raise BadCall(f"a command has no NUL and at most {MOST_COMMAND_BYTES >> 10} KiB")
    return course.run_command(command)


def _done(course: Course, _: Mapping[str, Any]) -> str:
    _last(course)
    return "done"


def _last(course: Course) -> str:
    if not course.steps:
        raise BadCall("nothing is written yet")
    return course.steps[-1].source


def _step(course: Course, number: int) -> str:
    if not 1 <= number <= len(course.steps):
        raise BadCall(f"there is no step {number}: {len(course.steps)} are written")
    return course.steps[number - 1].source


_DOERS: Mapping[str, Callable[[Course, Mapping[str, Any]], str]] = {
    WRITE.name: _write,
    JUDGE.name: _judge,
    PROFILE.name: _profile,
    DIFF.name: _diff,
    READ.name: _read,
    SHELL.name: _shell,
    DONE.name: _done,
}
