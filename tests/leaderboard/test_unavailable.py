"""What the site answers while its database or its disk does not."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client
from rest_framework.test import APIClient

from leaderboard.models import DataVersion, Submission
from leaderboard.models.catalogue import OutdatedSummaryError
from tests.leaderboard import factory

pytestmark = pytest.mark.server

FAULTS = [
    OperationalError("database is locked"),
    OperationalError("connection refused: secret detail"),
    InterfaceError("connection already closed"),
    OSError(errno.ENOSPC, "No space left on device"),
    OutdatedSummaryError(0),
]


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_it_says_when_to_come_back(
    db: None, client: Client, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def broken(*_: object, **__: object) -> int:
        raise fault

    monkeypatch.setattr(DataVersion.objects, "current", broken)
    client.raise_request_exception = False
    for address in ("/", "/leaderboard.json", "/api/v1/status"):
        answer = client.get(address)
        assert (answer.status_code, answer["Retry-After"]) == (503, "30"), address
        assert answer["Cache-Control"] == "no-store"
        assert b"secret" not in answer.content
        is_page = answer["Content-Type"].startswith("text/html")
        assert is_page == (address == "/")
    assert "cannot answer now" in client.get("/").text


def test_a_database_that_is_locked_takes_no_submission(
    submitter: APIClient, monkeypatch: pytest.MonkeyPatch, problem: Any
) -> None:
    def locked(*_: object, **__: object) -> Submission:
        raise OperationalError("database is locked")

    monkeypatch.setattr(Submission.objects, "create", locked)
    submitter.raise_request_exception = False
    fields = {"model": "M", "harness": "zero-shot", "problem": "1", "backend": "pytorch"}
    fields["source"] = factory.SOURCE
    answer = submitter.post("/api/v1/submissions", fields, format="json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert not Submission.objects.exists()
