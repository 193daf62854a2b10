"""Docstrings say what a function does for its caller: none begins with a question."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# The packages whose docstrings keep the rule.
PACKAGES = ("problems", "evaluator", "leaderboard", "tooling")
QUESTIONS = {"What", "Whether", "Of", "By", "How", "Where", "Which", "Who", "Why", "When"}


def _modules(package: str) -> list[Path]:
    """List a package's modules, without problem files: their digest is what results are of."""
    return [p for p in sorted((ROOT / package).rglob("*.py")) if not _is_problem(p)]


def _is_problem(path: Path) -> bool:
    return path.parent.parent == ROOT / "problems"


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of each function and class of a module that has one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            text = ast.get_docstring(node)
            if text:
                yield node.name, text


@pytest.mark.parametrize("package", PACKAGES)
def test_no_docstring_begins_with_a_question(package: str) -> None:
    found = [(path.name, *told) for path in _modules(package) for told in _docstrings(path)]
    assert found
    first = [(path, name, text.split()[0].strip(",.:;")) for path, name, text in found]
    assert not [told for told in first if told[-1] in QUESTIONS]
