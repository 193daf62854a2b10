"""Checks a report against the run that it is about. What an honest judge sends passes, whatever the
submission did: a refused report is a fault of ours, and no verdict may become one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evaluator import Device, Dtype, Isolation, Profile, Report, Trial, Verdict, limits_of
from evaluator.messages.job import Placement, Setting
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Run, WorkerHost
from leaderboard.models.choices import TRIALS
from leaderboard.runs.timing_checks import Work, check_timing

TEXT_CHARS = 20_000
LIST_ENTRIES = 1000
# A judge caps bytes; host paths in them are then written as names, which may be longer.
LOG_GROWTH = 4
# The process that starts the ranks, which has a log too.
LAUNCHER = -1
_COUNTED = re.compile(r"(?P<count>\d+) x (?P<name>.+)")
# Sizes, costs and work share of a problem, as the catalogue has them.
Catalogued = Mapping[str, Any]


def check_report(run: Run, report: Report, problem: Catalogued) -> None:
    """Raise RequestError with the first thing that does not fit the run or cannot be.

    Of `problem` only `sizes`, `costs` and `work_share` are read, and only where it is still the
    run's version.
    """
    check_subject(run, report)
    is_current = run.problem_digest == run.kernel.problem.digest
    known = problem if is_current else {}
    _check_setting(run, report)
    _check_ranks(run.world_size, report)
    _check_trials(run, report, known.get("sizes", {}).get(run.size))
    _check_hardware(run, report)
    _check_texts(run, report)
    if report.timing is not None:
        cost = known.get("costs", {}).get(run.size, {}).get(str(run.world_size))
        work = Work(cost, known.get("work_share") or 1.0) if cost else None
        check_timing(report, report.timing, setting_of(run), work)


def check_subject(run: Run, report: Report) -> None:
    """Raise RequestError unless the report is about this kernel and this version of its problem."""
    expected = (run.kernel.problem.slug, run.problem_digest, run.kernel.source_id)
    if (report.problem, report.problem_digest, report.kernel_digest) != expected:
        raise RequestError(
            "wrong_subject",
            "The report is about another kernel, another problem or another version of it.",
            "Bring the host's problem files to the version that the site has.",
        )


def check_origin(run: Run, report: Report, told: WorkerHost | None) -> None:
    """Raise RequestError unless the report comes from the host that has the run, as that described
    itself at hello, and says what it judged."""
    environment = report.environment
    facts = {
        "host": (environment.host, run.host),
        "hardware": (_without_count(environment.hardware), told and _without_count(told.hardware)),
        "judge_version": (report.judge_version, told and told.judge_version),
    }
    for name, (found, expected) in facts.items():
        if found != expected:
            raise misfit("origin", f"{name} is {found}, and the host that has the run: {expected}.")
    if told and not Isolation(told.isolation).at_least(report.isolation):
        raise misfit("origin", f"isolation is {report.isolation}, more than {told.isolation}.")
    if report.setting is None:
        raise misfit("setting", "The report does not say in which setting it judged.")


def setting_of(run: Run) -> Setting:
    """Return how a run is to be judged."""
    return Setting(
        world_size=run.world_size,
        size=run.size,
        dtype=Dtype(run.dtype),
        profile=Profile(run.profile),
        device=Device(run.device),
        placement=Placement(run.placement),
    )


def fits_class(queue: str, hardware: str, least: int | None = None) -> bool:
    """Return whether hardware can be of a class: `4 x NVIDIA H200` of h200x4, and of h200x2; or so
    many GPUs of it at least."""
    device, _, count = queue.rpartition("x")
    if not count.isdecimal():
        return True  # a class of processors: any
    found = _COUNTED.fullmatch(hardware)
    has_enough = found is not None and int(found["count"]) >= (least or int(count))
    return has_enough and _is_called(_without_count(hardware), device)


def misfit(what: str, message: str) -> RequestError:
    """Return the error for a part of a report that is not believed."""
    fix = "Let the host's judge be the site's release, unchanged, and look at the host."
    return RequestError(f"wrong_{what}", message[:500], fix)


def _check_setting(run: Run, report: Report) -> None:
    expected = setting_of(run)
    if report.setting not in (None, expected) or report.placement is not expected.placement:
        raise misfit("setting", f"The run asked for {expected}, the report tells of another.")
    if report.timing is not None and not run.is_timed:
        raise misfit(
            "setting", "Ranks that share a device are not timed, and the report has times."
        )


def _check_ranks(world_size: int, report: Report) -> None:
    for where, rank in _ranks_of(report):
        if not (0 <= rank < world_size or (where == "a log" and rank == LAUNCHER)):
            raise misfit("ranks", f"{where} is of rank {rank}, of {world_size} ranks.")
    for where, told in (("timelines", report.timelines), ("logs", report.logs)):
        if len({one.rank for one in told}) != len(told):
            raise misfit("ranks", f"There are two {where} of one rank.")
    for name in ("rank_us", "rank_last") if report.timing else ():
        if len(told_of := getattr(report.timing, name)) not in (0, world_size):
            raise misfit("ranks", f"{name} has {len(told_of)} of {world_size} ranks.")
        if min(told_of, default=0) < 0:
            raise misfit("ranks", f"{name} has {min(told_of)}.")


def _ranks_of(report: Report) -> Iterator[tuple[str, int]]:
    yield from (("the verdict", rank) for rank in report.ranks)
    yield from (("a check", check.rank) for trial in report.trials for check in trial.checks)
    yield from (("a timeline", timeline.rank) for timeline in report.timelines)
    yield from (("a log", log.rank) for log in report.logs)


def _check_trials(run: Run, report: Report, size: Mapping[str, int] | None) -> None:
    trials = report.trials
    if size and trials and (size["m"], size["n"]) not in {(trial.m, trial.n) for trial in trials}:
        raise misfit("size", f"No trial has the shape of size {run.size}.")
    if report.verdict is not Verdict.OK:
        return
    if len({trial.trial for trial in trials}) < TRIALS:
        raise misfit("trials", f"A kernel is right after {TRIALS} trials, not {len(trials)}.")
    everybody = set(range(run.world_size))
    if not all(_checked_ranks(trial) == everybody for trial in trials):
        raise misfit("trials", "A trial of a correct kernel does not tell of every rank.")


def _checked_ranks(trial: Trial) -> set[int]:
    return {check.rank for check in trial.checks}


def _check_hardware(run: Run, report: Report) -> None:
    hardware, names = report.environment.hardware, [gpu.name for gpu in report.gpus]
    is_gpu = Device(run.device) is Device.CUDA
    gpus = run.world_size if run.is_timed else 1
    counts = (gpus,) if report.timing else (0, gpus)
    if len(names) not in (counts if is_gpu else (0,)):
        raise misfit("hardware", f"The report tells of {len(names)} GPUs.")
    if not fits_class(run.hardware_id, hardware, gpus):
        raise misfit("hardware", f"{hardware[:200]} is not of the class {run.hardware_id}.")
    if any(name != _without_count(hardware) for name in names):
        raise misfit("hardware", "The GPUs are others than the hardware that the report names.")


def _check_texts(run: Run, report: Report) -> None:
    most = LOG_GROWTH * limits_of(Device(run.device)).log_bytes
    if any(len(log.text) > most for log in report.logs):
        raise misfit("length", f"A log is longer than {most} characters.")
    texts = (report.message, report.cause or "", report.evidence or "", *report.flags)
    if max(map(len, texts)) > TEXT_CHARS:
        raise misfit("length", f"A text is longer than {TEXT_CHARS} characters.")
    lists = (
        report.flags,
        report.ranks,
        report.trials,
        report.mechanisms,
        report.environment.versions,
    )
    if max(map(len, lists)) > LIST_ENTRIES:
        raise misfit("length", f"A list is longer than {LIST_ENTRIES} entries.")


def _without_count(hardware: str) -> str:
    found = _COUNTED.fullmatch(hardware)
    return found["name"] if found else hardware


def _is_called(name: str, device: str) -> bool:
    """Return whether a GPU is called as its class: the first word of it, `h200` of h200-nvl."""
    word = device.partition("-")[0]
    return word in re.sub(r"[^a-z0-9]", "", name.lower())
