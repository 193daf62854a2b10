"""Builds the wheel of the client, and installs it where nothing else is."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TREE = ("pyproject.toml", "LICENSE", "NOTICE", "evaluator/__init__.py")
FOLDERS = ("evaluator/client", "evaluator/messages", "fixtures", "problems")


def built(place: Path) -> Path:
    """Build the wheel of this tree below a folder, and return it."""
    tree, out = place / "tree", place / "out"
    for name in TREE:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-w", str(out), str(tree)], check=True, capture_output=True)
    (wheel,) = out.glob("pkb_client-*.whl")
    return wheel


def installed(place: Path) -> Path:
    """Build the wheel and unpack it below a folder; return what to put on `sys.path`."""
    with zipfile.ZipFile(built(place)) as archive:
        archive.extractall(place / "installed")
    return place / "installed"
