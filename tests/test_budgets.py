"""The house style's budgets, kept by reading the tree."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LINES, MODULE_LINES, PROBLEM_LINES, TEMPLATE_LINES, PARAMETERS = 40, 300, 100, 120, 6
BANNED_NAMES = {"utils", "helpers", "common", "misc", "core", "base", "manager"}
OTHER_PEOPLES_INTERFACE = "evaluator/compat/"

# A problem decides how many arguments these take.
PROBLEM_SIGNATURE = {"reference", "oracle", "solution"}

# Longer than the budget, each with its reason.
LONG: dict[str, str] = {
    "problems/context_parallel/hyena_forward_cp.py": "nine arguments and two re-shardings",
    "problems/graph_parallel/gnn_neighbor_sampling.py": "three exchanges per hop, then relabelling",
    "problems/vocab_parallel/vocab_parallel_log_prob_topk.py": "logits with a safe top-p cut",
}
# `path::function`, each with its reason.
MANY_PARAMETERS: dict[str, str] = {}


def _tracked(*suffixes: str) -> list[str]:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [p for p in listed.stdout.splitlines() if p.endswith(suffixes) and (ROOT / p).exists()]


def _modules() -> list[str]:
    """Python that we write: neither generated migrations nor hostile kernels."""
    left_out = ("leaderboard/migrations/", "tests/evaluator/misbehaving/", "fixtures/")
    return [path for path in _tracked(".py") if not path.startswith(left_out)]


def _line_budget(path: str) -> int:
    parts = Path(path).parts
    is_problem = parts[0] == "problems" and len(parts) == 3
    return PROBLEM_LINES if is_problem else MODULE_LINES


def _functions(path: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse((ROOT / path).read_text(), path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _length(path: str) -> int:
    return len((ROOT / path).read_text().splitlines())


@pytest.mark.parametrize("path", _modules())
def test_a_module_fits_its_budget(path: str) -> None:
    if path not in LONG:
        assert _length(path) <= _line_budget(path)


@pytest.mark.parametrize("path", _modules())
def test_functions_are_short_and_take_few_parameters(path: str) -> None:
    too_long, too_wide = [], []
    for function in _functions(path):
        arguments = function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        parameters = [name for name in names if name not in ("self", "cls")]
        if _lines(function) > FUNCTION_LINES:
            too_long.append(f"{function.name}: {_lines(function)} lines")
        is_wide = len(parameters) > PARAMETERS and function.name not in PROBLEM_SIGNATURE
        if is_wide and f"{path}::{function.name}" not in MANY_PARAMETERS:
            too_wide.append(f"{function.name}: {len(parameters)} parameters")
    assert not too_long
    assert not too_wide


@pytest.mark.parametrize("path", _tracked(".html"))
def test_a_template_fits_its_budget(path: str) -> None:
    assert _length(path) <= TEMPLATE_LINES


def test_no_module_has_a_name_that_says_nothing() -> None:
    modules = [path for path in _modules() if not path.startswith(OTHER_PEOPLES_INTERFACE)]
    names = {path: {Path(path).stem, *Path(path).parts[:-1]} for path in modules}
    assert not {path for path, words in names.items() if words & BANNED_NAMES}


def test_every_exception_is_still_needed() -> None:
    assert not [path for path in LONG if _length(path) <= _line_budget(path)]
    known = {f"{path}::{function.name}" for path in _modules() for function in _functions(path)}
    assert set(MANY_PARAMETERS) <= known


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1
