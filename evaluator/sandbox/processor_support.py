"""Finds what a kernel needs and a run on processors alone lacks: never the kernel's fault.

It is read from the source, so that no run of a kernel decides whether it counts.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

from evaluator.messages.job import Job
from evaluator.messages.needs import beyond_processors, builds_extensions, uses_triton
from evaluator.messages.source_files import as_python
from evaluator.sandbox.sandbox import search_path

BUILDERS = {"c++": "a C++ compiler", "ninja": "Ninja"}
PARSE_S = 20.0
_PARSE = "import sys; compile(sys.stdin.buffer.read(), 'submission.py', 'exec', dont_inherit=True)"


def lacking(job: Job) -> str | None:
    """Return the first thing that is missing, in one sentence; None where nothing is, or where the
    source does not even parse: then the run says so."""
    missing = _missing(job.source)
    return missing if missing and _parses(job.source) else None


def _missing(source: str) -> str | None:
    if what := beyond_processors(source):
        return f"the kernel needs {what}, which cannot be checked on processors"
    if uses_triton(source) and importlib.util.find_spec("triton") is None:
        return "the kernel needs Triton; it is not installed here"
    if builds_extensions(source):
        for program, what in BUILDERS.items():
            if shutil.which(program, path=search_path()) is None:
                return f"the kernel needs {what}; it is not installed here"
    return None


def _parses(source: str) -> bool:
    """Return whether the source is Python, of which nothing runs: in a process of its own, as a
    hostile one may end its parser. One that takes too long may be, on a host that is busy; nobody
    gains a verdict by that which naming what is missing would not get."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PARSE],
            input=as_python(source).encode(errors="surrogatepass"),
            timeout=PARSE_S,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode == 0
