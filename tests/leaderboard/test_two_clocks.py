"""Judge 10 has another clock than judge 9: a board shows times of one of them, and nothing closer
than what it resolves counts as faster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from evaluator.messages.report import JUDGE_VERSION, Verdict
from leaderboard.models import Notice, Problem, Run, Submission
from leaderboard.models.notices import Event
from leaderboard.models.staleness import stale, why_stale
from leaderboard.problem_pages.records import records_of, timed_kernels
from leaderboard.publishing.feed import records
from leaderboard.read_model import boards
from leaderboard.read_model.board_query import other_setting
from leaderboard.read_model.boards import known_settings
from leaderboard.read_model.columns import placed
from tests.leaderboard import factory
from tests.leaderboard.timings import make_timing

pytestmark = [pytest.mark.django_db, pytest.mark.server]


def judged(name: str, problem: Problem, judge: str, **changes: Any) -> Run:
    """A right kernel by this judge, or the verdict asked for."""
    verdict = changes.pop("verdict", Verdict.OK)
    kernel = factory.make_kernel(factory.make_submission(name), problem, source=f"{name} {judge}")
    run = factory.make_run(kernel, **changes)
    return factory.finish(run, factory.make_report(run, verdict, judge_version=judge))


def shown(client: Client, query: str = "") -> tuple[str, set[str]]:
    """The judge that a board is of, and its models."""
    told = client.get(f"/leaderboard.json{query}").json()
    return told["setting"]["judge_version"], {row["model"] for row in told["rows"]}


def test_a_board_begins_with_the_new_clock_as_soon_as_it_has_a_time(
    problem: Problem, client: Client
) -> None:
    for name in ("One", "Two", "Three"):
        judged(name, problem, "9")
    assert shown(client) == ("9", {"One", "Two", "Three"})
    assert f"judge version 9 (now {JUDGE_VERSION})" in client.get("/").text
    judged("Four", problem, "10")
    assert shown(client) == ("10", {"Four"})
    assert "judge version 10" in client.get("/").text
    assert shown(client, "?judge=9") == ("9", {"One", "Two", "Three"})


def test_a_failure_alone_does_not_empty_a_board(problem: Problem, client: Client) -> None:
    judged("One", problem, "9")
    judged("Two", problem, "10", verdict=Verdict.TIMEOUT)
    assert shown(client) == ("9", {"One"})


def test_the_new_clock_moves_no_other_setting(problem: Problem, client: Client) -> None:
    for name in ("One", "Two"):
        judged(name, problem, "9", size="standard")
    judged("Three", problem, "10", size="tiny")
    assert [(one.size, one.judge_version) for one in known_settings()] == [
        ("standard", "9"),
        ("tiny", "10"),
    ]
    judged("Four", problem, "10", size="standard")
    assert [(one.size, one.judge_version) for one in known_settings()] == [
        ("standard", "10"),
        ("standard", "9"),
        ("tiny", "10"),
    ]


def test_a_submission_is_shown_in_the_setting_that_boards_begin_with(
    problem: Problem, client: Client
) -> None:
    for name in ("One", "Two"):
        judged(name, problem, "9")
    made = Submission.objects.get(model__name="One")
    run = factory.make_run(made.kernels.get())
    factory.finish(run, factory.make_report(run))
    told = client.get(f"/submissions/{made.pk}.json").json()
    assert told["setting"]["judge_version"] == "10"


def test_what_is_only_checked_does_not_depend_on_the_clock(
    problem: Problem, client: Client
) -> None:
    old = judged("One", problem, "9", placement="shared")
    new = judged("Two", problem, "10", placement="shared")
    assert shown(client) == ("9", {"One", "Two"})
    assert "(now" not in str(known_settings()[0])
    assert not stale(Run.objects.all()).exists()
    assert [why_stale(run) for run in (old, new)] == ["", ""]
    older = judged("Three", problem, "8", placement="shared")
    assert list(stale(Run.objects.all())) == [older]
    assert why_stale(older) == "judged by an older judge (8, now 9)"
    # The report and the page of the run say which judge it was.
    assert new.report is not None
    assert new.report["judge_version"] == "10"
    assert "<dt>Judge version</dt><dd>10," in client.get(f"/runs/{new.pk}").text
    assert "checks of judge version 9" in client.get("/").text
    assert "checks of judge 9" in str(known_settings()[0])


def test_what_was_checked_stands_beside_what_the_new_judge_timed(
    problem: Problem, client: Client, rf: Any
) -> None:
    judged("One", problem, "9", placement="shared")
    judged("Two", problem, "9")
    judged("Two", problem, "10")
    first = next(one for one in known_settings() if one.is_timed)
    other = other_setting(rf.get("/"), first, known_settings())
    assert first.judge_version == "10"
    assert other is not None
    assert (other.placement, other.judge_version) == ("shared", "9")


def _timed(name: str, problem: Problem, speedup: float, margin: float) -> Run:
    """Of a kernel whose time is not known better than this share."""
    kernel = factory.make_kernel(factory.make_submission(name, owner=name), problem, source=name)
    run = factory.make_run(kernel)
    low, high = speedup * (1 - margin), speedup * (1 + margin)
    timing = replace(make_timing(speedup), speedup_low=low, speedup_high=high)
    return factory.finish(run, factory.make_report(run, speedup=speedup, timing=timing))


def test_times_closer_than_the_clock_resolves_are_not_distinguishable_anywhere(
    problem: Problem,
) -> None:
    """Two kernels, a little faster than the reference and than each other."""
    runs = [_timed("one", problem, 1.010, 0.02), _timed("two", problem, 1.015, 0.02)]
    (setting,) = known_settings()
    entries = boards.judged(setting, 1)
    assert [(one.score.fast_at_1, one.score.likely_fast_at_1) for one in entries] == [(0, 1)] * 2
    assert [(one.place, one.tie_group) for one in placed(entries, "fast1")] == [("1=", 1)] * 2
    assert records() == []
    assert [one.run for one in records_of(timed_kernels(problem, setting))] == [runs[0].pk]
    assert not Notice.objects.filter(kind=Event.RECORD_LOST).exists()


def test_times_that_the_clock_tells_apart_are_a_record_everywhere(problem: Problem) -> None:
    runs = [_timed("one", problem, 1.1, 0.01), _timed("two", problem, 1.2, 0.01)]
    (setting,) = known_settings()
    assert [one.score.fast_at_1 for one in boards.judged(setting, 1)] == [1, 1]
    assert [item.url for item in records()] == [f"/runs/{runs[1].pk}"]
    timed = timed_kernels(problem, setting)
    assert [one.run for one in records_of(timed)] == [run.pk for run in runs]
    assert Notice.objects.filter(kind=Event.RECORD_LOST).count() == 1
