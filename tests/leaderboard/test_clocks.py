"""Web hosts whose clocks differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from leaderboard.models import Run, WorkerHost
from leaderboard.runs import evaluation, hosts
from tests.leaderboard.running import HELLO, PROGRESS, claim, fresh, say_hello


def test_leases_and_hosts_live_by_the_databases_clock(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two web hosts, whose clocks are an hour apart."""
    right = timezone.now
    say_hello(replace(HELLO, host="host-1"))
    holding = claim(run).holding
    monkeypatch.setattr("django.utils.timezone.now", lambda: right() + timedelta(hours=1))
    assert hosts.sweep() == 0
    assert WorkerHost.objects.alive().exists()
    evaluation.heartbeat(run.id, holding, PROGRESS)
    monkeypatch.setattr("django.utils.timezone.now", right)
    lease_until = fresh(run).lease_until
    assert lease_until is not None
    assert timedelta() < lease_until - right() <= timedelta(seconds=settings.PKB_LEASE_S)
    assert evaluation.give_up_lost() == 0
