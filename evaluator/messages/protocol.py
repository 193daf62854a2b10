"""Carries lines of JSON between the supervisor and the judge's process: a job in; progress, then a
report or an error."""

from __future__ import annotations

import json
import traceback
from typing import IO

from evaluator.messages.codec import decode, encode
from evaluator.messages.faults import DirtyHost, EvaluatorError
from evaluator.messages.job import Job
from evaluator.messages.report import Progress, Report


def read_job(stream: IO[str]) -> Job | None:
    """Read the next job; None where no more come. Raises ValueError where the line is none."""
    line = stream.readline()
    return decode(Job, json.loads(line)) if line else None


def write_job(stream: IO[str], job: Job) -> None:
    """Write a job as a line."""
    stream.write(json.dumps(encode(job)) + "\n")
    stream.flush()


def send_progress(stream: IO[str], progress: Progress) -> None:
    """Write progress as a line."""
    _send(stream, "progress", encode(progress))


def send_report(stream: IO[str], report: Report) -> None:
    """Write a report as a line."""
    _send(stream, "report", encode(report))


def send_error(stream: IO[str], error: Exception) -> None:
    """Write an error as a line, with its traceback unless it is one of ours."""
    known = isinstance(error, EvaluatorError)
    kind = "dirty" if isinstance(error, DirtyHost) else "error"
    _send(stream, kind, str(error) if known else "".join(traceback.format_exception(error)))


def parse(line: str) -> Progress | Report | EvaluatorError:
    """Decode one line of the judge. Raises ValueError where it is none."""
    ((kind, value),) = json.loads(line).items()
    if kind == "progress":
        return decode(Progress, value)
    if kind == "report":
        return decode(Report, value)
    return DirtyHost(str(value)) if kind == "dirty" else EvaluatorError(str(value))


def _send(stream: IO[str], kind: str, value: object) -> None:
    stream.write(json.dumps({kind: value}) + "\n")
    stream.flush()
