"""Baselines on boards: others are compared with them, whatever a board is narrowed to."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from leaderboard.models import LanguageModel, Submission
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]
NAME = "PyTorch + NCCL"


@pytest.fixture
def reference() -> Submission:
    """Handed in twice, beside a submission that is no baseline."""
    problem = factory.make_problem()
    factory.make_judged(factory.make_submission("Fast"), problem, speedup=2.0)
    made = factory.make_submission(NAME, "human", k=2)
    for speedup in (1.0, 0.97):
        factory.make_judged(made, problem, speedup=speedup)
    LanguageModel.objects.filter(pk=made.model_id).update(is_baseline=True)
    return made


def board(client: Client, query: str) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in client.get(f"/leaderboard.json?{query}").json()["rows"]}


@pytest.mark.parametrize("tail", ["", "&p=0.9", "&category=tensor", "&source=NVIDIA/nccl"])
@pytest.mark.parametrize("query", ["backend=cuda", "mechanism=tma", "backend=cuda&nccl=no"])
def test_all_of_a_baseline_counts_under_every_filter_on_kernels(
    query: str, tail: str, reference: Submission, client: Client
) -> None:
    assert list(board(client, query + tail)) == [NAME]
    whole = {**board(client, tail)[NAME], "unfiltered": True}
    assert board(client, query + tail)[NAME] == whole
    assert '<tr class="baseline">' in client.get(f"/?{query}{tail}").text


def test_its_cells_in_the_matrix_stay_too(reference: Submission, client: Client) -> None:
    for query in ("backend=cuda", "mechanism=tma&category=tensor"):
        (cell,) = client.get(f"/matrix.json?{query}").json()["cells"]
        assert (cell["submission"], cell["correct"], cell["speedup"]) == (reference.pk, 2, 1.0)
        assert NAME in client.get(f"/matrix?{query}").text
        for address in (f"/matrix/{reference.pk}", f"/matrix/{reference.pk}/1"):
            assert client.get(f"{address}?{query}").status_code == 302
