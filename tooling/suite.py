"""Run `make test`: lint, types, import contracts, tests on the default and on servers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tooling import install, places, servers
from tooling.console import Failure

IN_CI = os.environ.get("CI") == "true"
PYTHON_FOLDERS = ("problems", "evaluator", "leaderboard", "tests", "tooling", "benchmarks")
DEBIAN_PACKAGES = {
    "initdb": "postgresql",
    "redis-server": "redis-server",
    "chromium": "chromium fonts-dejavu-core",
    "bwrap": "bubblewrap",
    "g++": "g++",
    "nginx": "nginx-light",
}
SITE_SETTINGS = ("DATABASE_URL", "CELERY_BROKER_URL")
# Of `make check`: folders and files of tests that start no judge, and take a second of processor a
# test at most.
QUICK_FOLDERS = ("tests/leaderboard", "tests/evaluator/client", "tests/evaluator/generate")
QUICK_FILES = {
    "tests": "budgets docs prose requirements operating_files",
    "tests/problems": """
        collectives comparison context limits mask_chains mutants perceptron prompt registry
        trials
    """,
    "tests/evaluator": """
        acceptance arguments baseline brokers canaries claims_and_text compat crowded_gpu
        crowded_host diagnose early_sends facts feedback host host_traces languages messages needs
        roofline scan sealing stacks support timeline timing untrusted_bytes waits worker_states
    """,
}
LEFT_TO_TEST = tuple(
    f"tests/leaderboard/test_{name}.py"
    for name in ("locked_database", "migrations", "page_budgets")
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Hold one line of the closing table."""

    name: str
    failed: bool
    seconds: float
    note: str = ""


def check() -> None:
    """Run the static checks and quick tests, which need no server, judge or database. Raises
    Failure naming those that failed."""
    install.virtual_environment(development=True)
    with tempfile.TemporaryDirectory(prefix="pkb-test-") as state:
        outcomes = [_check(name, command) for name, command in _static_checks()]
        outcomes.append(_check("quick tests", quick_tests(), _embedded(state)))
    _close(outcomes)


def quick_tests() -> list[str]:
    """Return the command that runs the tests of `make check`."""
    files = [
        f"{folder}/test_{name}.py"
        for folder, names in QUICK_FILES.items()
        for name in names.split()
    ]
    chosen = "not (alone or browser or database or similar or slow)"
    left_out = [f"--ignore={path}" for path in LEFT_TO_TEST]
    pytest = [places.PYTHON, "-m", "pytest", "-q", "-n", "2", "-m", chosen]
    return [*pytest, *left_out, *QUICK_FOLDERS, *files]


def run_suite(*, only_static: bool = False, everything: bool = False) -> None:
    """Run the checks, also after a failed one; `everything` includes tests that try what others try
    in another way. Raises Failure naming those that failed."""
    install.virtual_environment(development=True)
    with ThreadPoolExecutor() as beside:  # one waits for downloads, the other for a processor
        installed = None if only_static else beside.submit(_install_programs)
        outcomes = [_check(name, command) for name, command in _static_checks()]
    missing = installed.result() if installed else []
    if not only_static:
        outcomes += _tests(everything=everything)
    _close([*outcomes, *(_skipped(name) for name in missing)])


def _close(outcomes: Sequence[Outcome]) -> None:
    """Print the closing table. Raises Failure naming the checks that failed."""
    print("\n== all checks ==")
    for outcome in outcomes:
        result = "FAILED" if outcome.failed else "ok"
        print(f"{outcome.name:<26} {result:<7} {outcome.seconds:6.1f} s  {outcome.note}")
    if failed := [outcome.name for outcome in outcomes if outcome.failed]:
        raise Failure(f"failed: {', '.join(failed)}")


def rewrite() -> None:
    """Rewrite files in the house format, for `make format`."""
    install.virtual_environment(development=True)
    for command in (
        ["ruff", "check", "--fix", "--quiet", "."],
        ["ruff", "format", "--quiet", "."],
    ):
        subprocess.run([places.program(command[0]), *command[1:]], cwd=places.ROOT, check=False)


def _static_checks() -> Iterator[tuple[str, list[str]]]:
    yield "ruff format", [places.program("ruff"), "format", "--check", "--quiet", "."]
    yield "ruff check", [places.program("ruff"), "check", "--quiet", "."]
    folders = [name for name in PYTHON_FOLDERS if any((places.ROOT / name).rglob("*.py"))]
    yield "mypy --strict", [places.program("mypy"), *folders]
    yield "import contracts", [places.program("lint-imports")]
    yield "migrations", [places.PYTHON, "manage.py", "makemigrations", "--check", "--dry-run"]


def _tests(*, everything: bool) -> list[Outcome]:
    """Test the site on real servers, then everything on the embedded default.

    Tests that time something run one at a time, the others share the processors.
    """
    outcomes = []
    wanted = "" if everything else " and not similar"
    pytest = [places.PYTHON, "-m", "pytest", "-q"]
    shared = [*pytest, "-n", "2"]
    with tempfile.TemporaryDirectory(prefix="pkb-test-") as state:
        embedded = _embedded(state)
        with _servers() as addresses:
            if addresses:
                site = [
                    *shared,
                    "-m",
                    f"server and database and not browser{wanted}",
                    "tests/leaderboard",
                ]
                outcomes.append(_check("site, PostgreSQL + Redis", site, {**embedded, **addresses}))
        chosen = [] if everything else ["-m", "not similar"]
        rest = [*shared, *chosen, "--ignore=tests/evaluator", "tests"]
        outcomes.append(_check("problems, site, tree", rest, embedded))
        untimed = [*shared, "-m", f"not alone{wanted}", "tests/evaluator"]
        outcomes.append(_check("evaluator, untimed", untimed, embedded))
        alone = [*pytest, "-m", f"alone{wanted}", "tests/evaluator"]
        outcomes.append(_check("evaluator, timed", alone, embedded))
    return outcomes


def _embedded(state: str) -> dict[str, str]:
    """Return the environment of tests on SQLite, whose site keeps its state in that folder."""
    inherited = {k: v for k, v in os.environ.items() if k not in SITE_SETTINGS}
    return {**inherited, "PKB_STATE_DIR": state}


@contextmanager
def _servers() -> Iterator[dict[str, str]]:
    """Yield the settings of both servers, or none where one of them cannot be had."""
    if servers.postgresql_folder() is None or shutil.which("redis-server") is None:
        yield {}
        return
    with ExitStack() as stack:
        yield {
            "DATABASE_URL": stack.enter_context(servers.postgresql()),
            "CELERY_BROKER_URL": stack.enter_context(servers.redis()),
        }


def _check(name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Outcome:
    print(f"\n== {name} ==", flush=True)
    started_s = time.monotonic()
    closing = ""
    with subprocess.Popen(
        command, cwd=places.ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.decode(errors="replace").rstrip()
            print(text, flush=True)
            closing = text if re.search(r"\d+ (passed|failed|error)", text) else closing
    seconds = time.monotonic() - started_s
    return Outcome(name=name, failed=process.returncode != 0, seconds=seconds, note=closing)


def _install_programs() -> list[str]:
    """Install what the tests drive; returns what is still missing."""
    if missing := _missing_programs():
        packages = [word for name in missing for word in DEBIAN_PACKAGES[name].split()]
        print(f"  installing {', '.join(packages)}", flush=True)
        install.debian_packages(packages)
    return _missing_programs()


def _missing_programs() -> list[str]:
    missing = [name for name in DEBIAN_PACKAGES if name != "initdb" and not shutil.which(name)]
    return missing if servers.postgresql_folder() else ["initdb", *missing]


def _skipped(program: str) -> Outcome:
    package = DEBIAN_PACKAGES[program]
    note = f"tests that need {program} were left out: apt-get install {package} (as root)"
    return Outcome(name=f"without {program}", failed=IN_CI, seconds=0.0, note=note)
