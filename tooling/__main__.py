"""Run `python -m tooling <command>`, which `make <command>` calls."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable

from tooling import deploying, down, install, places, suite, up
from tooling.console import Failure

CACHES = (".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache")


def clean() -> None:
    """Stop what runs and remove everything that the other commands made."""
    down.down()
    for name in (".venv", ".local", *CACHES):
        shutil.rmtree(places.ROOT / name, ignore_errors=True)
    for folder in [path for path in places.ROOT.rglob("__pycache__") if path.is_dir()]:
        shutil.rmtree(folder, ignore_errors=True)


def screenshots() -> None:
    """Take pictures of the running site, in a process that has the virtual environment."""
    install.virtual_environment(development=True)
    up.up()
    subprocess.run([places.PYTHON, "-m", "tooling.screenshots"], cwd=places.ROOT, check=True)


COMMANDS: dict[str, Callable[[], None]] = {
    "up": up.up,
    "down": down.down,
    "check": suite.check,
    "test": suite.run_suite,
    "test-all": lambda: suite.run_suite(everything=True),
    "test-deploy": deploying.test_deploy,
    "lint": lambda: suite.run_suite(only_static=True),
    "format": suite.rewrite,
    "clean": clean,
    "screenshots": screenshots,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tooling", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    try:
        COMMANDS[parser.parse_args().command]()
    except Failure as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
