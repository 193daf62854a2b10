"""The client needs nothing but an old Python, and `pip` makes a wheel of it."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator import __version__
from tests.evaluator.client.wheel import built

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "evaluator" / "client"
# What of the messages runs on Python 3.9, too.
SHARED = ("answers", "archive_names", "entry", "source_files")
OLD = [ROOT / "evaluator" / "messages" / f"{name}.py" for name in SHARED]
# What is asked for only where there is Python 3.11.
NEWER = {"messages.job", "messages.manifest", "messages.needs"}
# What is asked for only where somebody wants frames.
FRAMES = {"results": ("pandas", "pyarrow")}


@pytest.mark.parametrize("path", [*sorted(CLIENT.glob("*.py")), *OLD], ids=lambda path: path.stem)
def test_a_module_is_read_by_python_3_9_and_imports_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    shared = {f"messages.{name}" for name in SHARED}
    own = {one.stem for one in CLIENT.glob("*.py")} | NEWER | shared | {*SHARED}
    for level, name in _imported(tree):
        known = own if level else {*sys.stdlib_module_names, *FRAMES.get(path.stem, ())}
        # Of the messages each other is a neighbour, and the client's neighbour one level up.
        own_name = name.removeprefix("messages.") if level == 1 else name
        assert (own_name if level else name.partition(".")[0]) in known | set(SHARED), name


def _imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield how far up and what; of `from . import a` each name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((node.level, name) for name in names)


def test_pip_makes_a_wheel_that_installs_pkb(tmp_path: Path) -> None:
    with zipfile.ZipFile(built(tmp_path)) as archive:
        archive.extractall(tmp_path / "installed")
        (entries,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert "pkb = pkb.client.main:main" in archive.read(entries).decode()
        tops = {name.partition("/")[0] for name in archive.namelist()}
        assert "pkb/py.typed" in archive.namelist()
    assert {name for name in tops if not name.endswith(".dist-info")} == {"pkb"}
    (tmp_path / "1_allreduce_cuda.py").write_text("def solution(tensor): ...\n")
    code = (
        "from pkb.client.arguments import version; print(version())\n"
        "from pkb.client.main import main; sys.exit(main(['check', '1_allreduce_cuda.py']))"
    )
    done = _alone(tmp_path, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{__version__}\n")
    assert "needs    GPUs that reach each other's memory, NCCL, nvcc" in done.stdout

    code = "import pkb; print(len(pkb.Benchmark()), pkb.Benchmark()[1].prompt('cuda'), pkb.__all__)"
    done = _alone(tmp_path, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("87 ## Problem 1: All-reduce (sum)")


def _alone(place: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run a program by a Python that has the wheel and nothing else."""
    path = f"import sys; sys.path.insert(0, {str(place / 'installed')!r})\n"
    command = [sys.executable, "-I", "-S", "-c", path + code]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
