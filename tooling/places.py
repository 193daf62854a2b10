"""Name the places of things, relative to the root of the repository."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
PYTHON = str(BIN / "python")
REQUIREMENTS = ROOT / "requirements"
IMAGES = ROOT / "docs" / "images"
EXAMPLE_KERNEL = ROOT / "fixtures" / "kernels" / "1_allreduce_pytorch.py"


def program(name: str) -> str:
    """Return the path of a program of the virtual environment."""
    return str(BIN / name)


def state() -> Path:
    """Return the folder of all that a running site writes: `$PKB_STATE_DIR`, else `.local`."""
    return Path(os.environ.get("PKB_STATE_DIR") or ROOT / ".local").resolve()


def make_state() -> None:
    """Make the folder, for its owner only. One that somebody chose for us keeps its mode."""
    state().mkdir(mode=0o700, parents=True, exist_ok=True)
    if state() == ROOT / ".local":
        state().chmod(0o700)


def logs() -> Path:
    return state() / "log"


def private_folder(name: str) -> Path:
    """Make a folder of the state that only its owner may enter, and return its path."""
    folder = state() / name
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder
