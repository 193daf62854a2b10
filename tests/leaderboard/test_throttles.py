"""Limits of the API hold over all processes of the site, and however many ask at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import caches
from django.core.cache.backends.db import DatabaseCache
from django.db import connection
from rest_framework.test import APIClient

from leaderboard.api.access import ReadThrottle, SubmitThrottle
from leaderboard.models import ApiToken, Scope
from tests.leaderboard import factory

pytestmark = pytest.mark.server

THREADS, TURNS, LIMIT = 8, 3, 7
URL = "/api/v1/submissions"


def test_another_process_counts_the_same_submissions(
    submitter: APIClient, monkeypatch: Any
) -> None:
    monkeypatch.setattr(SubmitThrottle, "rate", "2/min", raising=False)
    said = [submitter.post(URL).status_code for _ in range(2)]
    known = caches.settings["default"]
    another = DatabaseCache(known["LOCATION"], {"OPTIONS": known["OPTIONS"]})
    monkeypatch.setattr(SubmitThrottle, "cache", another)
    assert [*said, submitter.post(URL).status_code] == [400, 400, 429]


@pytest.mark.django_db(transaction=True)
def test_of_many_requests_at_once_as_many_pass_as_may(monkeypatch: Any) -> None:
    monkeypatch.setattr(SubmitThrottle, "rate", f"{LIMIT}/hour", raising=False)
    owner = factory.make_user()
    _, text = ApiToken.objects.issue(scope=Scope.SUBMIT, name="test", owner=owner)
    barrier = Barrier(THREADS)

    def ask(_: int) -> list[int]:
        client = APIClient(headers={"authorization": f"Bearer {text}"})
        barrier.wait()
        try:
            return [client.post(URL).status_code for _ in range(TURNS)]
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as threads:
        said = [status for own in threads.map(ask, range(THREADS)) for status in own]
    assert (said.count(400), said.count(429)) == (LIMIT, THREADS * TURNS - LIMIT)


def test_reads_are_counted_by_the_address_that_proxies_tell(
    db: None, settings: Any, monkeypatch: Any, owner: User
) -> None:
    settings.NUM_PROXIES = 1
    monkeypatch.setattr(ReadThrottle, "rate", "2/min", raising=False)
    said = [
        APIClient(headers={"x-forwarded-for": told}).get("/api/v1/problems").status_code
        for told in ("1.1.1.1, 10.0.0.1", "2.2.2.2, 10.0.0.1", "3.3.3.3, 10.0.0.1", "10.0.0.2")
    ]
    assert said == [200, 200, 429, 200]
