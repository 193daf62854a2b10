"""A request that arrives twice."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from leaderboard.models import (
    Run,
    Source,
    Submission,
)
from tests.leaderboard.conftest import Api
from tests.leaderboard.uploads import (
    ABOUT,
    GOOD,
    NAME,
    ONE,
    URL,
    Send,
    make_zip,
)

pytestmark = pytest.mark.server


def test_the_same_request_twice_is_stored_once(send: Send) -> None:
    first = send(ONE, **{"Idempotency-Key": "k-1"})
    again = send(ONE, **{"Idempotency-Key": "k-1"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert Submission.objects.count() == Run.objects.count() == 1


def test_the_same_archive_twice_is_stored_once(send: Send) -> None:
    archive = make_zip({NAME: GOOD, "2_allgather_cpp.py": GOOD})
    first = send(ABOUT, archive, **{"Idempotency-Key": "k-1"})
    again = send(ABOUT, archive, **{"Idempotency-Key": "k-1"})
    assert first.json() == again.json()


def test_a_key_of_another_request_is_refused(send: Send) -> None:
    send(ONE, **{"Idempotency-Key": "k-1"})
    answer = send({**ONE, "world_size": 4}, **{"Idempotency-Key": "k-1"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "idempotency_key_reused")
    assert Submission.objects.count() == 1


def test_keys_of_two_users_do_not_meet(send: Send, api: Api, other: User) -> None:
    send(ONE, **{"Idempotency-Key": "k-1"})
    headers = {"Idempotency-Key": "k-1"}
    answer = api(other).post(URL, ONE, format="json", headers=headers)
    assert answer.status_code == 201
    assert Submission.objects.count() == 2


@pytest.mark.parametrize("key", ["", "k" * 201, "a\tb"])
def test_a_key_that_is_no_key_is_refused(send: Send, key: str) -> None:
    answer = send(ONE, **{"Idempotency-Key": key})
    assert answer.json()["error"]["code"] == "bad_idempotency_key"


def test_without_a_key_the_same_kernel_may_be_handed_in_again(send: Send) -> None:
    assert [send(ONE).status_code for _ in range(2)] == [201, 201]
    assert (Submission.objects.count(), Source.objects.count()) == (2, 1)
