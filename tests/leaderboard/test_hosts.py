"""Hosts, their queues, and the sweep."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    Decline,
    Problem,
    Run,
    Status,
    WorkerHost,
)
from leaderboard.runs import evaluation, hosts
from tests.leaderboard import factory
from tests.leaderboard.conftest import Bells
from tests.leaderboard.running import HELLO, claim, decline, fresh, lapse, report_of, say_hello

pytestmark = pytest.mark.server


def test_the_sweep_takes_up_what_a_silent_worker_left(run: Run, bells: Bells) -> None:
    claim(run)
    say_hello(HELLO)
    assert fresh(run).status == Status.RUNNING
    lapse(run)
    say_hello(HELLO)
    assert fresh(run).status == Status.QUEUED
    assert bells == [(run.id, "cpu")]
    assert fresh(run).last_error == "host-1 went silent."


def test_a_run_whose_worker_dies_three_times_fails(run: Run) -> None:
    for _ in range(3):
        claim(run)
        lapse(run)
        hosts.sweep()
    assert fresh(run).status == Status.FAILED


def test_a_lost_bell_is_rung_again_after_a_while_and_once(
    run: Run, bells: Bells, settings: LazySettings
) -> None:
    long_ago = timezone.now() - timedelta(seconds=settings.PKB_RERING_S + 1)
    Run.objects.filter(pk=run.pk).update(rung_at=long_ago)
    say_hello(HELLO)
    say_hello(HELLO)
    assert bells == [(run.id, "cpu")]


def test_no_bell_for_a_queue_without_a_living_host(run: Run, bells: Bells) -> None:
    say_hello(HELLO)
    bells.clear()
    Run.objects.filter(pk=run.pk).update(rung_at=None)
    WorkerHost.objects.update(last_seen_at=timezone.now() - timedelta(minutes=5))
    assert hosts.sweep() == 0
    assert bells == []


def test_a_long_queue_is_not_rung_all_at_once(problem: Problem, bells: Bells) -> None:
    submission = factory.make_submission()
    for attempt in range(1, 8):
        factory.make_run(factory.make_kernel(submission, problem, attempt=attempt))
    say_hello(HELLO)
    assert len(bells) == hosts.RINGS_PER_HOST


def _ring_anew() -> None:
    Run.objects.queued().update(rung_at=None)


def test_no_bell_for_a_run_that_every_living_host_declined(run: Run, bells: Bells) -> None:
    say_hello(HELLO)
    decline(run, "h")
    bells.clear()
    for _ in range(3):
        say_hello(HELLO)
        _ring_anew()
    assert bells == []
    assert fresh(run).status == Status.QUEUED


def test_another_host_hears_at_once_of_what_the_first_declined(run: Run, bells: Bells) -> None:
    say_hello(HELLO)
    decline(run, "h")
    bells.clear()
    say_hello(replace(HELLO, host="other"))
    say_hello(HELLO)
    assert bells == [(run.id, "cpu")]


def test_declined_runs_do_not_hide_others_from_the_sweep(problem: Problem, bells: Bells) -> None:
    say_hello(HELLO)
    submission = factory.make_submission()
    runs = [
        factory.make_run(factory.make_kernel(submission, problem, attempt=attempt))
        for attempt in range(1, 8)
    ]
    for run in runs[:5]:
        decline(run, "h")
    bells.clear()
    _ring_anew()
    hosts.sweep()
    assert bells == [(run.id, "cpu") for run in runs[5:]]
    bells.clear()
    _ring_anew()
    say_hello(replace(HELLO, host="other"))
    rung = {run_id for run_id, _ in bells}
    assert rung == {run.id for run in (*runs[:4], *runs[5:])}


@pytest.mark.parametrize(
    "change",
    [
        {"judge_version": "2"},
        {"hardware": "4 x CPU"},
        {"isolation": "vm"},
        {"versions": {"triton": "3.6"}},
    ],
)
def test_a_host_that_has_changed_is_asked_again(
    run: Run, bells: Bells, change: dict[str, Any]
) -> None:
    say_hello(HELLO)
    decline(run, "h")
    decline(run, "other")
    bells.clear()
    say_hello(HELLO)
    assert Decline.objects.count() == 2
    say_hello(replace(HELLO, **change))
    assert [kept.host for kept in Decline.objects.all()] == ["other"]
    assert bells == [(run.id, "cpu")]
    assert claim(run, "h").tries == 1


def test_a_host_that_was_silent_is_asked_again(run: Run, settings: LazySettings) -> None:
    say_hello(HELLO)
    decline(run, "h")
    silence = timedelta(seconds=settings.PKB_HOST_SILENCE_S + 1)
    WorkerHost.objects.update(last_seen_at=timezone.now() - silence)
    say_hello(HELLO)
    assert not Decline.objects.exists()


def test_what_was_declined_on_another_queue_or_of_an_ended_run_stays(run: Run) -> None:
    decline(run, "h")
    say_hello(replace(HELLO, queue="cpu-arm"))
    assert Decline.objects.count() == 1
    lease = claim(run, "other")
    evaluation.finish(run.id, lease.holding, report_of(run))
    say_hello(replace(HELLO, judge_version="2"))
    assert Decline.objects.count() == 1


@pytest.mark.parametrize("queue", ["gpu", "h200x0", "h200x65", "H200x4", "cpu_2", "x4 ", "h" * 40])
def test_a_queue_is_named_after_what_it_has(db: None, queue: str) -> None:
    with pytest.raises(RequestError, match="class of hardware"):
        hosts.register(queue, "?")


def test_hardware_follows_from_the_name_of_its_queue(db: None) -> None:
    made = hosts.register("h200x4", "4 x NVIDIA H200")
    assert (made.device, made.max_world_size) == ("cuda", 4)
    assert hosts.register("cpu", "CPU").device == "cpu"
