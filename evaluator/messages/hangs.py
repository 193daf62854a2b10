"""Names the kernel of a run that hung on its GPUs, and the line that launched it, as far as the
ranks' stacks and the source say it: for the judge's reason, and for pages of older reports.

Stacks and source are attacker-controlled: what comes out is short and has visible characters only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from .source_files import as_python, parts_of
from .text import plain_text

MOST_NAMED = 5
MOST_LINE = 160
MOST_NAME = 80
ALL_LAUNCHED = "launched everything, and the GPU never finished it"
# As the judge names the line where a rank stood; `for the GPU` is ALL_LAUNCHED in older reports.
_STOOD = re.compile(r"(\w[\w.-]{0,200}\.py) line (\d{1,7}) \((\w{1,80})\)")
_AT_GPU = (ALL_LAUNCHED, "for the GPU")
# `name<<<grid, block>>>` and `name<int><<<...>>>` of CUDA, and the calls of its runtime.
_CUDA = re.compile(r"\b(\w{1,80})\s*+(?:<[^<>;{}]{0,200}>)?\s*+<<<")
_BY_CALL = re.compile(
    r"\b(?:cudaLaunchKernelEx\s*\([^,;]{1,80},|cudaLaunch(?:Cooperative)?Kernel\s*\()"
    r"\s*(?:\([^()]{0,80}\)\s*)?&?(\w{1,80})"
)


class Launch(NamedTuple):
    """Names a kernel that a source launches, and the line where it does."""

    kernel: str
    line: int


class Hang(NamedTuple):
    """Says in a sentence what never finished. `line` is that of the launch, or where the ranks
    stood; `code` is that line. `is_named`: the sentence names a kernel."""

    says: str
    line: int | None
    code: str
    is_named: bool


def hang_of(told: str, source: str | None) -> Hang | None:
    """Explain a hang on GPUs from the judge's sentence on where ranks stood; return None
    where they stood neither in a line of the submission nor at the GPU. Without a source no kernel
    is named."""
    stood = _stood(told, source or "")
    if not stood and not any(words in told for words in _AT_GPU):
        return None
    found = [] if source is None else launches(source)
    if stood:
        return _at_line(*stood, found, source)
    return _on_gpu(found, source)


def _stood(told: str, source: str) -> tuple[int, str] | None:
    """Return the first line of the submission, counted over all its files, that ranks stood in."""
    parts = parts_of(source)
    for name, line, function in _STOOD.findall(told):
        first = [part.line for part in parts if part.path.rpartition("/")[2] == name]
        if len(first) == 1 or (not parts and name == "submission.py"):
            return int(line) + (first[0] - 1 if first else 0), function
    return None


def _at_line(line: int, function: str, found: list[Launch], source: str | None) -> Hang:
    """Say it where the ranks stood in a line of the submission."""
    code = _code(source, line)
    here = [one for one in found if one.line == line]
    if here:
        says = f"Kernel {here[0].kernel} never finished. Line {line} ({function}) launched it."
        return Hang(says, line, code, True)
    says = f"The ranks never got past line {line} ({function})."
    before = [one for one in found if one.line < line]
    if before:
        last = before[-1]
        says += f" The last launch above it is that of {last.kernel}, in line {last.line}."
    return Hang(says, line, code, bool(before))


def _on_gpu(found: list[Launch], source: str | None) -> Hang:
    """Say it where all lines of the submission were done and only the GPU was not."""
    done = "Every launch was made, and the GPU never finished its work"
    if source is None:
        without = "This site does not hold the source, so it cannot name the kernel."
        return Hang(f"{done}. {without}", None, "", False)
    names = list(dict.fromkeys(one.kernel for one in found))
    if not names:
        return Hang(f"{done}. The source launches no kernel by name.", None, "", False)
    if len(names) == 1:
        last = found[-1]
        says = f"Kernel {last.kernel} never finished. Line {last.line} launched it."
        return Hang(says, last.line, _code(source, last.line), True)
    listed = ", ".join(f"{one.kernel} (line {one.line})" for one in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return Hang(f"One of these kernels never finished: {listed}{more}.", found[0].line, "", True)


def launches(source: str) -> list[Launch]:
    """Return the launches of kernels in a source in the order of lines, those of CUDA within its
    strings and those of Triton, `kernel[grid](...)`, without repetitions."""
    found = set(_of_triton(source))
    for number, line in enumerate(source.splitlines(), start=1):
        for pattern in (_CUDA, _BY_CALL):
            found.update((name, number) for name in pattern.findall(line))
    named = (Launch(plain_text(name, MOST_NAME), line) for name, line in found)
    return sorted(named, key=lambda one: (one.line, one.kernel))


def _of_triton(source: str) -> list[tuple[str, int]]:
    """Return the launches of kernels that a source marks with `jit`. A source is hostile: each of
    its nodes is looked at a few times, however many launches there are."""
    try:
        nodes = [*ast.walk(ast.parse(as_python(source)))]
        kernels = {
            node.name
            for node in nodes
            if isinstance(node, ast.FunctionDef)
            and any("jit" in ast.unparse(one) for one in node.decorator_list)
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    meant = _meant(nodes, kernels)
    return [
        (name, node.lineno)
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and isinstance(node.func.value, ast.Name)
        for name in meant.get(node.func.value.id, ())
    ]


def _meant(nodes: Iterable[ast.AST], kernels: set[str]) -> dict[str, set[str]]:
    """Return the kernels that each name stands for: itself, or those that it is assigned one of."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and (used := kernels.intersection(_names(node.value))):
            for name in _names(*node.targets):
                found.setdefault(name, set()).update(used)
    return found | {name: {name} for name in kernels}


def _names(*trees: ast.AST) -> list[str]:
    return [one.id for tree in trees for one in ast.walk(tree) if isinstance(one, ast.Name)]


def _code(source: str | None, line: int) -> str:
    lines = (source or "").splitlines()
    return plain_text(lines[line - 1].strip(), MOST_LINE) if 1 <= line <= len(lines) else ""
