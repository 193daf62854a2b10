"""Reads what a worker sends, and turns it into columns of a run."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from typing import Any, TypeVar

from evaluator import Report
from evaluator.messages.codec import DecodeError, decode, encode
from evaluator.messages.report import MAX_REPORT_BYTES
from leaderboard.kit.json_types import JsonDict, JsonObject
from leaderboard.kit.request_error import RequestError
from leaderboard.models.choices import comparable_judge
from leaderboard.models.runs import TIMES

Message = TypeVar("Message")
# Columns that a report fills as they are.
FOUND = (
    *("verdict", "phase", "message", "cause", "evidence", "flags", "ranks"),
    *("isolation", "environment"),
)


def decoded(kind: type[Message], value: object, name: str) -> Message:
    """Return a message of the evaluator's; raise RequestError `bad_<name>`."""
    try:
        return decode(kind, value, name)
    except DecodeError as error:
        fix = "Run the same version of the evaluator as the site."
        raise RequestError(f"bad_{name}", clean(str(error)), fix) from None


def columns_of(report: Report) -> JsonDict:
    """Return the columns of a run that a report fills; raise RequestError for a number that is not
    finite, a time below zero, and a report that is too long."""
    message = clean(encode(report))
    timing = message["timing"] or dict.fromkeys(TIMES)
    floors = report.floors
    numbers = {
        **{name: timing[name] for name in TIMES},
        "bound_us": floors.bound_us if floors else None,
        "utilisation": report.utilisation,
        "idle": idle_share(message["timelines"]),
    }
    if not all(0 <= number < math.inf for number in numbers.values() if number is not None):
        raise RequestError("bad_report", "A time is not finite.", "Mend the worker.")
    return {
        **numbers,
        **{name: message[name] for name in FOUND},
        "judge_version": comparable_judge(report.judge_version, report.placement),
        "limiter": floors.limiter if floors else None,
        "mechanisms": sorted({found["tag"] for found in message["mechanisms"]}),
        "report_packed": zlib.compress(_packable(message).encode(), 6),
    }


def idle_share(timelines: Sequence[JsonObject]) -> float | None:
    """Return the share of the profiled time in which nothing ran, over all ranks."""
    span_us = sum(one["span_us"] for one in timelines)
    idle_us = sum(one["idle_us"] for one in timelines)
    return min(1.0, max(0.0, idle_us / span_us)) if span_us > 0 else None


def _packable(message: JsonDict) -> str:
    try:
        text = json.dumps(message, allow_nan=False)
    except ValueError:
        reason = "A number of the report is not finite."
        raise RequestError("bad_report", reason, "Mend the worker.") from None
    check_length(text)
    return text


def check_length(text: str) -> None:
    """Raise RequestError for a report that is too long to be read."""
    if len(text) > MAX_REPORT_BYTES:
        reason = f"The report is longer than {MAX_REPORT_BYTES} bytes."
        raise RequestError("bad_report", reason, "Leave out timelines, then logs.")


def as_text(value: object) -> str:
    """Return any JSON value as a text that any database takes."""
    return json.dumps(clean(value))


def clean(value: Any) -> Any:
    """Return a JSON value with texts that any database takes: without NUL and lone surrogates."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode().replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return value
