"""Read a problem file's text: the reference as models are shown it."""

from __future__ import annotations

import ast

from problems import ProblemModule


def reference_source(module: ProblemModule) -> str:
    """Return the reference, its private helpers and their imports: a text that runs alone."""
    text = module.path.read_text()
    body = ast.parse(text).body
    helpers = [n for n in body if isinstance(n, ast.FunctionDef) and n.name.startswith("_")]
    reference = next(n for n in body if getattr(n, "name", "") == "reference")
    functions = "\n\n\n".join(_source(text, node) for node in [*helpers, reference])
    return f"import torch\nimport torch.distributed as dist\n\n\n{functions}\n"


def _source(text: str, node: ast.FunctionDef | ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
