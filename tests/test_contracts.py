"""What a process of each kind has really loaded: the import contracts, measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _loaded(statement: str) -> set[str]:
    """The modules in a fresh interpreter after `statement`."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        # Celery loads Django wherever this names a site; a judging host has none.
        env={k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "module",
    [
        *("evaluator", "evaluator.__main__", "evaluator.evaluate", "evaluator.worker"),
        *("evaluator.generate.__main__", "evaluator.client.main"),
    ],
)
def test_the_supervisor_loads_neither_torch_nor_a_web_framework(module: str) -> None:
    # kombu looks for a lazy string of Django's wherever Django is installed: django.utils, no more.
    assert not _loaded(f"import {module}") & {
        "torch",
        "numpy",
        "pandas",
        "django.conf",
        "django.db",
    }


def test_a_rank_loads_nothing_of_the_judge() -> None:
    loaded = _loaded(
        "import evaluator.rank.launcher, evaluator.rank.runner, evaluator.rank.profiler"
    )
    assert "evaluator.rank.runner" in loaded
    trusted = ("evaluator.judge", "evaluator.oracle", "evaluator.sandbox")
    assert not [name for name in loaded if name.startswith(trusted)]


def test_the_problem_list_is_read_without_torch() -> None:
    assert "torch" not in _loaded("import problems; problems.names()")


def test_a_web_worker_loads_neither_torch_nor_pandas() -> None:
    serve = "from leaderboard.wsgi import application\nfrom django.urls import get_resolver\n"
    loaded = _loaded(serve + "get_resolver().url_patterns")
    assert "django.db" in loaded
    assert not loaded & {"torch", "pandas", "numpy", "pyarrow", "plotly"}
    of_problems = {name for name in loaded if name.startswith("problems")}
    assert of_problems == {
        f"problems{name}"
        for name in (
            "",
            ".default_groups",
            ".environment",
            ".limits",
            ".prompt",
            ".spec",
            ".statement",
            ".topology",
        )
    }


def test_a_prompt_is_made_without_torch() -> None:
    assert "torch" not in _loaded("import problems.prompt, problems.topology")


def test_make_needs_nothing_but_the_standard_library() -> None:
    without_site_packages = [sys.executable, "-S", "-m", "tooling", "--help"]
    done = subprocess.run(without_site_packages, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
