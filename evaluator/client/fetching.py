"""Fetches the best kernel of a problem, with its licence and where it comes from."""

from __future__ import annotations

import hashlib
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

from .catalogue import BACKENDS, Problem, problem_called
from .console import plain, say, say_json
from .credentials import site_called
from .failures import OK, Misused, NoAnswer
from .reading import write_new
from .transport import SiteAddress, segment

NO_LICENCE = "none: its owner has not said that others may use it"


class Fetched(NamedTuple):
    """Holds a kernel as the site has it. `digest` is the SHA-256 of `source`, `speedup` that of the
    run at `run_url`."""

    problem: Problem
    backend: str
    source: str
    digest: str
    licence: str
    model: str
    speedup: float | None
    hardware: str
    run_url: str
    submission_url: str

    @property
    def heading(self) -> str:
        """Return lines of comments that say where it comes from."""
        told = {
            "problem": self.problem.folder,
            "written by": self.model,
            "licence": self.licence or NO_LICENCE,
            "speedup": f"{self.speedup:.2f}x on {self.hardware}" if self.speedup else "not timed",
            "run": self.run_url,
            "submission": self.submission_url,
            "sha256 of what follows": self.digest,
        }
        return "".join(f"# {name}: {_line(text)}\n" for name, text in told.items())

    @property
    def file_name(self) -> str:
        """Return the file name for its submission."""
        return f"{self.problem.folder}_{self.backend}.py"


def fetch(arguments: Namespace) -> int:
    """Write the best kernel of a problem, under a heading of comments. Nothing is run."""
    if not arguments.best:
        raise Misused("Which kernel is not said.", "Say --best: pkb fetch 5 --best.")
    site = site_called(arguments.site)
    found = best_kernel(site, problem_called(arguments.problem), arguments.hardware)
    path = arguments.output or Path(found.file_name)
    write_new(path, f"{found.heading}{found.source}".encode())
    if arguments.json:
        told = {name: value for name, value in found._asdict().items() if name != "source"}
        say_json({**told, "problem": found.problem.folder, "path": str(path)})
    else:
        say(f"{path}\n{found.heading}".rstrip())
    return OK


def best_kernel(site: SiteAddress, problem: Problem, hardware: str | None = None) -> Fetched:
    """Return the fastest correct public kernel of a problem whose source can be read.

    It is of a class of hardware, or of the setting that the problem's page begins with. Raises
    Misused if there is none, NoAnswer for a source that is another than its digest says.
    """
    address = f"/problems/{problem.number}-{segment(problem.slug)}.json"
    page = site.get(address, {"hardware": hardware}).json()
    for row in page["kernels"]:
        kernel = site.get(f"/api/v1/kernels/{segment(str(row['kernel']))}").json()
        if kernel["source"]:
            return _fetched(site, problem, row, kernel)
    raise Misused(
        f"There is no kernel of {problem.folder} to fetch.", "Its page says what there is."
    )


def _fetched(
    site: SiteAddress, problem: Problem, row: dict[str, Any], kernel: dict[str, Any]
) -> Fetched:
    source, digest = str(kernel["source"]), str(kernel["digest"])
    if hashlib.sha256(source.encode(errors="replace")).hexdigest() != digest:
        raise NoAnswer("the site sends another source than its digest says", is_passing=False)
    backend = str(row["backend"])
    if backend not in BACKENDS:
        raise NoAnswer(f"a backend that this pkb does not know: {backend}", is_passing=False)
    run = site.get(f"/api/v1/runs/{segment(str(row['run']))}").json()
    submission = site.get(f"/api/v1/submissions/{segment(str(row['submission']))}").json()
    speedup = row["speedup"]
    return Fetched(
        problem=problem,
        backend=backend,
        source=source,
        digest=digest,
        licence=str(submission.get("licence") or ""),
        model=str(row["model"]),
        speedup=None if speedup is None else float(speedup),
        hardware=str(run["hardware"]),
        run_url=str(run["url"]),
        submission_url=str(submission["url"]),
    )


def _line(text: object) -> str:
    """Return a text of the site as a part of one line of comments."""
    return " ".join(plain(text).split())
