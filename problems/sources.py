"""Read a problem file's text: the reference as models are shown it, and what its check needs."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence

from problems import ProblemModule

BEHAVIOUR = {
    *("number", "mutates", "mesh", "m_step", "n_step", "sizes", "outputs"),
    *("tolerances", "output_tolerances", "wire_bits", "settles_upstream"),
}
OURS = {"tolerances", "output_tolerances", "wire_bits"}  # PKB's check has its own
THEIRS = {"settles_upstream"}  # and `hardened` always settles


def reference_source(module: ProblemModule) -> str:
    """Return the reference, its private helpers and their imports: a text that runs alone."""
    text = module.path.read_text()
    written = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    functions = "\n\n\n".join(_lines_without(text, node, []) for node in _needed(written))
    return f"import torch\nimport torch.distributed as dist\n\n\n{functions}\n"


def _needed(written: Sequence[ast.FunctionDef]) -> list[ast.FunctionDef]:
    """Return the reference after the private functions that it calls, also indirectly; those that
    only make inputs are left out."""
    by_name = {node.name: node for node in written}
    found, left = set[str](), ["reference"]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            named = {one.id for one in ast.walk(by_name[name]) if isinstance(one, ast.Name)}
            left += [one for one in named if one.startswith("_") and one in by_name]
    helpers = [node for node in written if node.name in found - {"reference"}]
    return [*helpers, by_name["reference"]]


def behaviour(module: ProblemModule, profile: str = "hardened") -> str:
    """Return the SHA-256 of the code and fields of `Problem` that the screen depends on, no texts.

    Source text is hashed, because another Python makes another tree of it.
    """
    text, parts = module.path.read_text(), []
    read = BEHAVIOUR - (THEIRS if profile == "hardened" else OURS)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name != "cost":
            docstring = [node.body[0]] if ast.get_docstring(node) is not None else []
            parts.append(_lines_without(text, node, docstring))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            fields = [field for field in node.value.keywords if field.arg in read]
            parts += [ast.get_source_segment(text, field) or "" for field in fields]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _lines_without(text: str, node: ast.FunctionDef, left_out: Sequence[ast.stmt]) -> str:
    """Return a function's source lines, decorators included, but for some statements'."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    kept = set(range(first, (node.end_lineno or first) + 1))
    for statement in left_out:
        kept -= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return "\n".join(line for n, line in enumerate(text.splitlines(), 1) if n in kept)
