"""How many runs a host may have at once, and for how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from leaderboard.models import ApiToken, Run, Status
from leaderboard.runs import evaluation
from leaderboard.runs.claims import HoldsEnough, LeaseLost
from tests.leaderboard import factory
from tests.leaderboard.running import PROGRESS, claim, fresh, lapse, report_of, worker_token

pytestmark = [pytest.mark.django_db, pytest.mark.server]
TOKEN = "0123456789abcdef"


@pytest.fixture
def two(run: Run) -> tuple[Run, Run]:
    """Two runs that wait, of one kernel."""
    return run, factory.make_run(run.kernel, dtype="bfloat16")


@pytest.mark.parametrize("groups", [1, 2])
def test_a_host_has_as_many_runs_as_its_token_says(two: tuple[Run, Run], groups: int) -> None:
    worker_token()
    ApiToken.objects.update(groups=groups)
    first, second = two
    lease = claim(first)
    Run.objects.filter(pk=second.pk).update(rung_at=timezone.now())
    if groups == 2:
        assert claim(second).tries == 1
        return
    with pytest.raises(HoldsEnough):
        claim(second)
    assert (fresh(second).status, fresh(second).tries, fresh(second).rung_at) == ("queued", 0, None)
    assert claim(second, "host-2").tries == 1  # of which it is the first
    evaluation.finish(first.pk, lease.holding, report_of(first))


def test_a_run_that_ended_or_whose_host_went_silent_is_no_longer_held(two: tuple[Run, Run]) -> None:
    worker_token()
    ApiToken.objects.update(groups=1)
    first, second = two
    claim(first)
    lapse(first)
    lease = claim(second)
    evaluation.finish(second.pk, lease.holding, report_of(second))
    assert claim(first).tries == 2


def test_heartbeats_do_not_keep_a_run_for_ever(run: Run, settings: Any) -> None:
    lease = claim(run)
    long_ago = timezone.now() - timedelta(seconds=settings.PKB_RUN_S - 60)
    Run.objects.filter(pk=run.pk).update(started_at=long_ago)
    evaluation.heartbeat(run.pk, lease.holding, PROGRESS)
    Run.objects.filter(pk=run.pk).update(started_at=long_ago - timedelta(seconds=61))
    with pytest.raises(LeaseLost):
        evaluation.heartbeat(run.pk, lease.holding, PROGRESS)
    found = fresh(run)
    assert (found.status, found.lease_token) == (Status.QUEUED, None)
    assert "over 3600 s" in found.last_error
    assert claim(run, "host-2").tries == 2


def test_a_host_that_gives_no_results_is_named(run: Run, client: Client, settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    named = 'pkb_runs_given_up{host="host-1"} 1.0'

    def told() -> bool:
        headers = {"authorization": f"Bearer {TOKEN}"}
        return named in client.get("/metrics", headers=headers).text

    assert not told()
    evaluation.fail(run.pk, claim(run).holding, "driver hung")
    assert told()
    evaluation.finish(run.pk, claim(run, "host-2").holding, report_of(run))
    assert not told()
