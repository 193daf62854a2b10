"""Reads and checks reports that a judge made elsewhere, as lines of a file; stores no result."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import NoReturn

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

from evaluator import Backend, Device, Dtype, Isolation, Profile, Report
from evaluator.messages.codec import decode
from evaluator.messages.job import Placement
from leaderboard.kit.json_types import JsonObject
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Hardware, Kernel, LanguageModel, Problem, Run, Source, Submission
from leaderboard.models.choices import is_timed
from leaderboard.models.model_names import model_slug
from leaderboard.models.sources import packed_source
from leaderboard.runs.hosts import class_named
from leaderboard.runs.report_checks import check_report
from leaderboard.runs.reports import columns_of
from leaderboard.submissions.archives import Member
from leaderboard.submissions.sources import Candidate, checked_problem, decoded, from_member
from leaderboard.submissions.superseded_tasks import older_tasks

# Columns of a run that hold a member of a closed set.
ENUMS = ("dtype", "profile", "device", "placement")


class ReportLineError(Exception):
    """Names the line and what is wrong with it; nothing of the file can be stored."""


@dataclass(frozen=True, kw_only=True)
class LineJob:
    hardware: str
    world_size: int
    size: str
    dtype: Dtype
    profile: Profile
    device: Device
    placement: Placement = Placement.FULL


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Says where a source is that is not ours to show: in a commit of a public repository."""

    digest: str
    size_bytes: int
    repository: str
    commit: str
    path: str


@dataclass(frozen=True, kw_only=True)
class ReportLine:
    """Holds a kernel, whose it is, and its report. `judged_at` is ISO 8601 with an offset. The
    kernel is its `source`, or None and where that is."""

    model: str
    vendor: str
    harness: str
    baseline: bool
    k: int
    notes: str
    problem: str
    attempt: int
    step: int
    backend: Backend
    source: str | None
    job: LineJob
    judged_at: str
    report: Report
    origin: Origin | None = None

    @property
    def whose(self) -> tuple[str, str, str]:
        """Return what makes lines of a file one submission."""
        return self.model, self.harness, self.notes

    @property
    def counts(self) -> bool:
        return self.report.verdict.counts and self.report.isolation is not Isolation.NONE


@dataclass(frozen=True, kw_only=True)
class CheckedLine:
    """Holds a line that may be stored. `where` is its file and number; neither row is saved yet."""

    where: str
    line: ReportLine
    source: Source
    kernel: Kernel
    run: Run
    finished_at: datetime
    columns: JsonObject

    @property
    def is_stale(self) -> bool:
        return self.run.problem_digest != self.kernel.problem.digest

    @property
    def counts(self) -> bool:
        """Return whether it backs its submission; of a kernel that is stored, as that is marked."""
        return self.line.counts and not self.run.kernel.older_task

    @property
    def place(self) -> tuple[int, int, int]:
        return self.kernel.problem_id, self.kernel.attempt, self.kernel.step


def read(path: Path) -> list[str]:
    """Return the lines of a file, unpacked where it ends in .gz; raise ReportLineError."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except (OSError, EOFError, ValueError) as error:
        raise ReportLineError(f"{path} cannot be read: {error}") from None
    lines = text.removesuffix("\n").split("\n")
    if lines == [""]:
        raise ReportLineError(f"{path} is empty")
    return lines


def checked(path: Path, lines: Sequence[str]) -> list[CheckedLine]:
    """Return all lines, with their hardware made if it is new; raise ReportLineError."""
    found = list(_each_checked(path, lines))
    trees: dict[tuple[str, str], list[tuple[Candidate, Kernel]]] = {}
    for origin, kernel in ((one.line.origin, one.kernel) for one in found):
        if origin is not None and (candidate := _called(origin.path)):
            of_commit = trees.setdefault((origin.repository, origin.commit), [])
            of_commit.append((candidate, kernel))
    for named in trees.values():
        tasks = older_tasks([(candidate, kernel.problem) for candidate, kernel in named])
        for (_, kernel), task in zip(named, tasks, strict=True):
            kernel.older_task = task
    return found


def _called(path: str) -> Candidate | None:
    """Return what the path of a kernel that is elsewhere says of it, if anything."""
    try:
        return from_member(Member(path=PurePosixPath(path), content=b""), 1)
    except RequestError:
        return None


def _each_checked(path: Path, lines: Sequence[str]) -> Iterator[CheckedLine]:
    problems = {problem.slug: problem for problem in Problem.objects.all()}
    for number, text in enumerate(lines, 1):
        where = f"{path}:{number}"
        try:
            yield _checked(where, text, problems)
        except (RequestError, ValidationError, ValueError) as error:
            raise ReportLineError(f"{where}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{name}: {' '.join(said)}" for name, said in error.message_dict.items())
    return str(error)


def _checked(where: str, text: str, problems: Mapping[str, Problem]) -> CheckedLine:
    """Check one line; raise RequestError, ValidationError or ValueError where it is wrong."""
    value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    line = decode(ReportLine, value, "line")
    _check_texts(line)
    source = _source(line)
    candidate = Candidate(
        problem=line.problem,
        backend=line.backend,
        source=line.source or "",
        attempt=line.attempt,
        step=line.step,
        where=where,
    )
    kernel = Kernel(
        problem=checked_problem(candidate, problems),
        attempt=line.attempt,
        step=line.step,
        backend=line.backend.value,
        source_id=source.pk,
    )
    asked = {name: getattr(line.job, name) for name in ("world_size", "size")}
    asked |= {name: getattr(line.job, name).value for name in ENUMS}
    run = Run(kernel=kernel, problem_digest=line.report.problem_digest, **asked)
    columns = columns_of(line.report)
    run.hardware = _hardware(line, columns["environment"])
    check_report(run, line.report, kernel.problem.payload)
    _check_fields(kernel, "attempt", "step", "backend")
    _check_fields(run, *asked, "problem_digest")
    return CheckedLine(
        where=where,
        line=line,
        source=source,
        kernel=kernel,
        run=run,
        finished_at=_moment(line.judged_at),
        columns=columns,
    )


def _source(line: ReportLine) -> Source:
    if (line.source is None) is (line.origin is None):
        raise ValueError("a line has either source or origin")
    if line.source is not None:
        return packed_source(decoded(line.source.encode()))
    source = Source(**vars(line.origin))
    if not re.fullmatch(r"[0-9a-f]{64}", source.digest) or source.size_bytes < 0:
        raise ValueError("origin needs a SHA-256 in small letters and a size")
    if not re.fullmatch(r"[0-9a-f]{40,64}", source.commit):
        raise ValueError("origin needs the whole name of a commit")
    if not all(_is_plain(text) and text for text in (source.repository, source.path)):
        raise ValueError("origin needs repository and path")
    _check_fields(source, "digest", "size_bytes", "repository", "commit", "path")
    return source


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    """Refuse a number that JSON writes in digits and that is too large for a float."""
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


def _check_texts(line: ReportLine) -> None:
    if not all(map(_is_plain, (line.model, line.vendor, line.notes))):
        raise ValueError("model, vendor and notes must hold what a database takes")
    if not model_slug(line.model):
        raise ValueError("the model's name needs a letter from a to z or a digit")
    if not 1 <= line.attempt <= line.k <= 100 or line.step < 1:
        raise ValueError("attempt must lie between 1 and k, k between 1 and 100, step above 0")
    if not line.report.verdict.counts:
        raise ValueError(f"a report of {line.report.verdict} says nothing of its kernel")
    _check_fields(LanguageModel(name=line.model, vendor=line.vendor), "name", "vendor")
    _check_fields(Submission(harness=line.harness), "harness")


def _is_plain(text: str) -> bool:
    """Return True for text without NUL and halves of surrogate pairs."""
    return "\0" not in text and text == text.encode(errors="replace").decode()


def _check_fields(row: models.Model, *names: str) -> None:
    row.clean_fields(exclude={field.name for field in row._meta.fields} - set(names))


def _hardware(line: ReportLine, environment: JsonObject) -> Hardware:
    """Return the class of hardware that the line names, which may not be stored yet."""
    device, count = class_named(line.job.hardware)
    least = line.job.world_size if is_timed(line.job.placement) else 1
    if device != line.job.device or least > count:
        raise ValueError(
            f"{line.job.hardware} has no {line.job.world_size} ranks on {line.job.device.value}"
        )
    return Hardware(
        slug=line.job.hardware,
        title=environment["hardware"][:200],
        device=device,
        max_world_size=count,
        facts={
            "environment": {
                **{name: environment[name] for name in ("hardware", "versions")},
                "gpus": [gpu.name for gpu in line.report.gpus],
            }
        },
    )


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or moment > timezone.now():
        raise ValueError(f"judged_at must be a moment in the past with an offset, not {text[:40]}")
    return moment
