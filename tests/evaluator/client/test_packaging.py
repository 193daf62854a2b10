"""The client needs nothing but an old Python, and `pip` makes a wheel of it."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator import __version__

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "evaluator" / "client"
SHARED = ("answers", "archive_names", "entry")  # what of the messages runs on Python 3.9, too
OLD = [ROOT / "evaluator" / "messages" / f"{name}.py" for name in SHARED]
# What is asked for only where there is Python 3.11.
NEWER = {"messages.job", "messages.needs"}


@pytest.mark.parametrize("path", [*sorted(CLIENT.glob("*.py")), *OLD], ids=lambda path: path.stem)
def test_a_module_is_read_by_python_3_9_and_imports_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    shared = {f"messages.{name}" for name in SHARED}
    own = {one.stem for one in CLIENT.glob("*.py")} | NEWER | shared | {*SHARED}
    for level, name in _imported(tree):
        known = own if level else sys.stdlib_module_names
        assert (name if level else name.partition(".")[0]) in known, name


def _imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield how far up and what; of `from . import a` each name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((node.level, name) for name in names)


def test_pip_makes_a_wheel_that_installs_pkb(tmp_path: Path) -> None:
    tree, out = tmp_path / "tree", tmp_path / "out"
    for name in ("pyproject.toml", "LICENSE", "NOTICE", "evaluator/__init__.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    for name in ("client", "messages"):
        shutil.copytree(ROOT / "evaluator" / name, tree / "evaluator" / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-w", str(out), str(tree)], check=True, capture_output=True)
    (wheel,) = out.glob("pkb_client-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
        (entries,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert "pkb = pkb.client.main:main" in archive.read(entries).decode()
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"pkb"}
    (tmp_path / "1_allreduce_cuda.py").write_text("def solution(tensor): ...\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'installed')!r})\n"
        "from pkb.client.arguments import version; print(version())\n"
        "from pkb.client.main import main; sys.exit(main(['check', '1_allreduce_cuda.py']))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{__version__}\n")
    assert "needs    GPUs that reach each other's memory, NCCL, nvcc" in done.stdout
