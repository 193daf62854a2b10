"""Judges one kernel a line: what `python -m evaluator serve` does for another program.

A line in is a JSON object with `problem` and `source`, and what else of a job is not usual; a line
out is the report of training, in the same order.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from secrets import token_hex
from typing import Any

from evaluator.evaluate import evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.faults import DirtyHost, EvaluatorError
from evaluator.messages.feedback import training_report
from evaluator.messages.job import Backend, Device, Dtype, Job, Placement, limits_of
from evaluator.messages.report import Report, Verdict

TIERS = {"check": Placement.SHARED, "time": Placement.FULL}
USUAL: Mapping[Device, dict[str, Any]] = {
    Device.CPU: {"world_size": 2, "size": "tiny", "dtype": Dtype.FLOAT32},
    Device.CUDA: {"world_size": 4, "size": "standard", "dtype": Dtype.BFLOAT16},
}
MOST_GROUPS = 4096
TRIES = 3


def serve(lines: Iterable[str], say: Callable[[str], None]) -> None:
    """Answer line after line, until there are no more. Raises DirtyHost."""
    groups: OrderedDict[str, str] = OrderedDict()
    with PreforkServer(warm=True) as prefork:
        for line in lines:
            say(json.dumps(_answer(line, groups, prefork)))


def _answer(line: str, groups: OrderedDict[str, str], prefork: PreforkServer) -> dict[str, Any]:
    try:
        job = job_of(dict(json.loads(line)), groups)
    except (ValueError, TypeError, KeyError) as error:
        return {"verdict": "refused", "phase": "build", "feedback": f"no job: {error}"}
    said = "nothing was tried"
    for report in _tries(job, prefork):
        if isinstance(report, Report):
            return training_report(report)
        said = report
    return {"verdict": Verdict.INFRA_ERROR.value, "feedback": said}


def _tries(job: Job, prefork: PreforkServer) -> Iterator[Report | str]:
    """Yield the report, or why a try gave none, TRIES times at most."""
    for _ in range(TRIES):
        try:
            yield evaluate(job, None, prefork)
        except DirtyHost:
            raise
        except EvaluatorError as error:
            yield str(error)[-1000:]


def job_of(asked: Mapping[str, Any], groups: OrderedDict[str, str]) -> Job:
    """Return the job that a line asks for; `groups` keeps the secrets of the latest groups. Raises
    ValueError, TypeError or KeyError for a line that asks for none."""
    device = Device(asked.get("device", Device.CPU))
    given = {name: asked[name] for name in ("world_size", "size") if name in asked}
    if "dtype" in asked:
        given["dtype"] = Dtype(asked["dtype"])
    secret = None
    if name := asked.get("group_id"):
        secret = groups.setdefault(str(name), token_hex(16))
        if len(groups) > MOST_GROUPS:
            groups.popitem(last=False)
    return Job(
        problem=asked["problem"],
        source=asked["source"],
        backend=Backend(asked.get("backend", Backend.PYTORCH)),
        device=device,
        placement=TIERS[asked.get("tier", "check")],
        limits=limits_of(device),
        secret=secret,
        **{**USUAL[device], **given},
    )
