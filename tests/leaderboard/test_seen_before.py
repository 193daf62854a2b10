"""Who hands in what was here before is told, and led there; nobody learns what is private."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from leaderboard.models import Problem, Submission, Visibility
from tests.leaderboard import factory
from tests.leaderboard.uploads import Send

FIELDS = {"model": "M", "harness": "zero-shot", "problem": "allreduce", "backend": "pytorch"}


def test_a_source_that_was_here_before_is_told_and_linked(
    send: Send, problem: Problem, client: Client, owner: User
) -> None:
    fields = {**FIELDS, "source": factory.SOURCE}
    first = send(fields)
    assert first.json()["seen_before"] == []
    second = send(fields).json()
    number = first.json()["submission"]
    (seen,) = second["seen_before"]
    assert (seen["problem"], seen["submission"]) == ("allreduce", number)
    assert client.get(f"/kernels/{seen['kernel']}").status_code == 200
    assert send({**fields, "problem": "allgather"}).json()["seen_before"] == []
    client.force_login(owner)
    form = {**fields, "problem": "1", "visibility": "public"}
    page = client.post("/submit", form)
    assert page.status_code == 200
    assert f'href="/submissions/{number}"' in page.text
    assert f'href="/kernels/{seen["kernel"]}"' in page.text


@pytest.mark.parametrize("visibility", [Visibility.PRIVATE, Visibility.UNLISTED])
def test_what_others_keep_to_themselves_is_not_told(
    send: Send, problem: Problem, visibility: str
) -> None:
    hidden = factory.make_submission(visibility=visibility, owner="somebody")
    factory.make_kernel(hidden, problem)
    answer = send({**FIELDS, "source": factory.SOURCE}).json()
    assert answer["seen_before"] == []
    Submission.objects.filter(pk=hidden.pk).update(visibility=Visibility.PUBLIC)
    assert send({**FIELDS, "source": factory.SOURCE}).json()["seen_before"]
