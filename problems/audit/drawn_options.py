"""State the rule that hidden trials draw what a statement says may vary.

A kernel that takes an option for its usual value is wrong by the statement, and passes wherever no
trial has another one. So a statement either says that an argument is always the same, or trials
draw it.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence

from problems import ProblemModule
from problems.spec import GroupRef
from problems.values import tensors

WORLD_SIZES = (2, 4)  # on which every problem is screened
GIVEN = "a tensor or group"
SAYS_THE_SAME = r"\b(always|in every call|ignored|stays? the same)\b"
# These wait for a change of their files: drop an entry with it.
NOT_YET: Mapping[str, tuple[str, ...]] = {
    "moe_ep_narrow": ("num_experts",),
    "ring_attention_tp": ("num_heads", "cp_group"),
    "ring_attention_backward_dp": ("cp_group", "dp_group"),
    "fla_kimi_delta_attention_cp_tp": ("cp_group",),
}

Draw = Callable[[int], Sequence[Mapping[str, object]]]


def statement_is_drawn(module: ProblemModule, draw: Draw) -> list[str]:
    """Complain of options of which all trials have one value, and of a None that the statement
    explains and no trial has, where the statement does not say that it is always so. `draw` returns
    the inputs of all hidden trials of a run with so many ranks."""
    parameters = inspect.signature(module.reference).parameters
    seen: dict[str, set[str]] = {name: set() for name in parameters}
    for inputs in (inputs for size in WORLD_SIZES for inputs in draw(size)):
        for name, value in inputs.items():
            seen[name].add(_kind(value))
    waits, hints = NOT_YET.get(module.slug, ()), typing.get_type_hints(module.reference)
    return [
        f"{name} {lack}"
        for name, values in seen.items()
        if name not in waits and (lack := _lack(module, name, values, hints[name]))
    ]


def _lack(module: ProblemModule, argument: str, values: set[str], hint: object) -> str | None:
    """Return a complaint if trials do not vary an argument as the statement says, else None. A None
    counts that the statement names after the argument, in the same sentence and before any other
    argument."""
    statement, name = module.problem.statement, re.escape(argument)
    if re.search(rf"\b{name}\b[^.]*{SAYS_THE_SAME}", statement):
        return None
    others = [re.escape(one) for one in inspect.signature(module.reference).parameters]
    between = rf"(?:(?!\b(?:{'|'.join(others)})\b)[^.])*"
    names_none = re.search(rf"\b{name}\b{between}\bNone\b", statement)
    if names_none and "None" not in values and type(None) in typing.get_args(hint):
        return "is never None, of which the statement speaks"
    (value, *more) = values
    says_it = re.search(rf"\b{name} (=|is) {re.escape(value.strip(chr(39)))}\b", statement)
    if more or value == GIVEN or says_it:
        return None
    return f"is {value} in every trial, and the statement does not say that it always is"


def _kind(value: object) -> str:
    """Return a text that differs between values of an option; tensors and groups share one."""
    return GIVEN if isinstance(value, GroupRef) or tensors(value) else repr(value)
