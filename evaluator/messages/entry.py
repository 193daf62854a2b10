"""Finds the entry point of a source. The client has this module too, so it runs on Python 3.9."""

from __future__ import annotations

import ast
import re
import warnings

from .source_files import as_python

ENTRY = "solution"
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def has_entry(source: str) -> bool:
    """Return True if a source defines `solution` somewhere.

    A source that does not parse passes if it names `solution`: the judge says that it cannot be
    built.
    """
    try:
        tree = parsed(source)
    except UNREADABLE:
        return re.search(rf"\b{ENTRY}\b", source) is not None
    return any(_binds_entry(node) for node in ast.walk(tree))


def parsed(source: str) -> ast.Module:
    """Return the syntax tree of a source. Raises one of UNREADABLE."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(as_python(source).lstrip("\ufeff"))  # which Python passes over in a file


def _binds_entry(node: ast.AST) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name == ENTRY
    if isinstance(node, ast.Name):
        return node.id == ENTRY and isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.alias) and (node.asname or node.name) in (ENTRY, "*")
