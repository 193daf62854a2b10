"""Lines of JSON between the supervisor and the judge's process: a job in; progress, then a report
or an error."""

from __future__ import annotations

import json
import traceback
from typing import IO

from evaluator.messages.codec import decode, encode
from evaluator.messages.faults import DirtyHost, EvaluatorError
from evaluator.messages.job import Job
from evaluator.messages.report import Progress, Report


def read_job(stream: IO[str]) -> Job | None:
    """None where no more come."""
    line = stream.readline()
    return decode(Job, json.loads(line)) if line else None


def write_job(stream: IO[str], job: Job) -> None:
    stream.write(json.dumps(encode(job)) + "\n")
    stream.flush()


def send_progress(stream: IO[str], progress: Progress) -> None:
    _send(stream, "progress", encode(progress))


def send_report(stream: IO[str], report: Report) -> None:
    _send(stream, "report", encode(report))


def send_error(stream: IO[str], error: Exception) -> None:
    known = isinstance(error, EvaluatorError)
    kind = "dirty" if isinstance(error, DirtyHost) else "error"
    _send(stream, kind, str(error) if known else "".join(traceback.format_exception(error)))


def parse(line: str) -> Progress | Report | EvaluatorError:
    """One line of the judge; raises ValueError where it is none."""
    ((kind, value),) = json.loads(line).items()
    if kind == "progress":
        return decode(Progress, value)
    if kind == "report":
        return decode(Report, value)
    return DirtyHost(str(value)) if kind == "dirty" else EvaluatorError(str(value))


def _send(stream: IO[str], kind: str, value: object) -> None:
    stream.write(json.dumps({kind: value}) + "\n")
    stream.flush()
