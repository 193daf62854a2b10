"""Times that a judge may report, and of judges up to 9 those that it may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evaluator.messages.report import Verdict
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Run, WorkerHost
from leaderboard.runs import evaluation
from tests.leaderboard.running import claim, fresh, report_of

Told = dict[str, Any]
Change = Callable[[Told], object]


def times(**values: Any) -> Change:
    return lambda told: told["timing"].update(values)


def _next_to_nothing(told: Told) -> None:
    """What an empty call takes is taken off a kernel that replaces the runner, too."""
    timing = told["timing"]
    timing.update(kernel_us=0.1, kernel_bursts_us=[0.1] * 8)
    timing["kernel"]["answer_us"] = 0.1
    timing.update(speedup=1000.0, speedup_low=900.0, speedup_high=1100.0)


BELIEVED: dict[str, Change] = {
    "all": lambda told: None,
    "a reference of an earlier run": times(after_us=None),
    "nothing queued, as on processors": times(ahead=None),
    "one time a side": lambda told: told["timing"]["kernel"].update(call_us=None, series_us=None),
    "a kernel that replaces the runner": _next_to_nothing,
    "some calls for nothing": times(kernel_bursts_us=[-1.0, 0.0, *[100.0 / 1.3] * 6]),
}


@pytest.mark.parametrize("name", BELIEVED)
def test_what_an_honest_judge_may_have_measured_is_stored(run: Run, name: str) -> None:
    lease = claim(run)
    told = report_of(run)
    BELIEVED[name](told)
    evaluation.finish(run.pk, lease.holding, told)
    assert fresh(run).verdict == Verdict.OK


BATCH_MISFITS: dict[str, Change] = {
    "no single calls": times(kernel_single_us=None),
    "median": times(kernel_bursts_us=[50.0] * 8),
    "calls": times(timed_calls=100_000),
    "a single call of an hour": times(kernel_single_us=3.6e9),
    "negative empty batch": times(empty_us=-1.0),
    "a phase too short": lambda told: told["phase_s"].update(timed=0.001),
}


def old_report(run: Run) -> Told:
    WorkerHost.objects.update(judge_version="9")
    return report_of(run, judge_version="9")


def test_what_judges_up_to_nine_report_is_stored_as_before(run: Run) -> None:
    lease = claim(run)
    evaluation.finish(run.pk, lease.holding, old_report(run))
    assert (fresh(run).verdict, fresh(run).judge_version) == (Verdict.OK, "9")


@pytest.mark.parametrize("name", BATCH_MISFITS)
def test_what_cannot_be_of_batches_is_refused_as_before(run: Run, name: str) -> None:
    lease = claim(run)
    told = old_report(run)
    BATCH_MISFITS[name](told)
    with pytest.raises(RequestError) as refused:
        evaluation.finish(run.pk, lease.holding, told)
    assert refused.value.code == "impossible_times", refused.value.message


def test_a_new_judge_cannot_report_batches(run: Run) -> None:
    lease = claim(run)
    old = report_of(run, judge_version="9")["timing"]
    with pytest.raises(RequestError, match="one call"):
        evaluation.finish(run.pk, lease.holding, {**report_of(run), "timing": old})
