"""Make the virtual environment, install what is pinned, and Debian packages where it may."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tooling import places
from tooling.console import Failure, run_logged, step

CONSTRAINTS = places.REQUIREMENTS / "constraints.txt"


def virtual_environment(*, development: bool) -> None:
    """Bring `.venv` to the pinned versions; does nothing when they are installed already."""
    with step("python") as notes:
        if not _works(places.PYTHON):
            _create()
        notes.append(_ask(places.PYTHON, "import sys; print(sys.version.split()[0])"))
        notes.append(str(places.VENV.relative_to(places.ROOT)))
    with step("requirements") as notes:
        names = _requirement_files(development=development)
        if all(_stamp(name).exists() for name in names):
            notes.append("unchanged")
            return
        arguments = [word for name in names for word in ("-r", str(places.REQUIREMENTS / name))]
        pip = [places.PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run_logged("pip", [*pip, *arguments, "-c", str(CONSTRAINTS)])
        for name in names:
            _stamp(name).parent.mkdir(exist_ok=True)
            _stamp(name).touch()
        notes.append(f"installed {', '.join(name.removesuffix('.txt') for name in names)}")


def _requirement_files(*, development: bool) -> list[str]:
    names = ["web.txt", "evaluator.txt", "generate.txt"]
    if not (has_gpu() and _has_torch(places.PYTHON)):
        names.append("torch.txt")
    return [*names, "dev.txt"] if development else names


def _stamp(name: str) -> Path:
    """Return the path of a file that exists when these very requirements are installed."""
    text = (places.REQUIREMENTS / name).read_bytes() + CONSTRAINTS.read_bytes()
    return places.VENV / "installed" / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"


def _create() -> None:
    """Make `.venv` anew; raises Failure when this Python cannot make virtual environments."""
    shutil.rmtree(places.VENV, ignore_errors=True)
    if not _has_ensurepip() and not debian_packages([f"python3.{sys.version_info.minor}-venv"]):
        raise Failure(
            f"{sys.executable} lacks the venv module: install Debian's python3-venv "
            "(apt-get install python3-venv), or say PYTHON=/path/to/another/python"
        )
    keep_torch = has_gpu() and _has_torch(sys.executable)
    options = ["--system-site-packages"] if keep_torch else []
    run_logged("venv", [sys.executable, "-m", "venv", *options, str(places.VENV)])


def _has_ensurepip() -> bool:
    return (Path(sysconfig.get_path("stdlib")) / "ensurepip").is_dir()


def _works(python: str) -> bool:
    code = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    return Path(python).exists() and _succeeds([python, "-c", code])


def _has_torch(python: str) -> bool:
    return _succeeds([python, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"])


def has_gpu() -> bool:
    return shutil.which("nvidia-smi") is not None and _succeeds(["nvidia-smi", "-L"])


def debian_packages(names: list[str]) -> bool:
    """Install Debian packages; False where this user or this system does not let us."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *names]
    try:
        run_logged("apt", install, env)
    except Failure:  # a fresh machine has no package lists yet
        try:
            run_logged("apt-update", ["apt-get", "update", "-q"], env)
            run_logged("apt", install, env)
        except Failure as failure:
            print(failure)
            return False
    return True


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _ask(python: str, code: str) -> str:
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return answer.stdout.strip()
