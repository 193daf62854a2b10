"""What a model is given of a problem, as the API tells it."""

from __future__ import annotations

import pytest
from django.test import Client

from leaderboard.models import Problem


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("backend=rust", "has no backend rust: use"),
        ("hardware=<b>", "is not judged on <b>"),
        ("size=huge", "has no size huge"),
        ("dtype=int8", "has no dtype int8"),
        ("world_size=3", "has no number of ranks 3"),
        ("world_size=999999999999", "no number of ranks"),
        ("world_size=%D9%A3", "no number of ranks"),
    ],
)
def test_a_prompt_is_of_a_setting_that_there_is(
    problem: Problem, client: Client, query: str, says: str
) -> None:
    problem.payload |= {name: getattr(problem, name) for name in ("number", "slug", "title")}
    problem.save()
    address = "/api/v1/problems/1/prompt?dtype=float32"
    told = client.get(address).json()
    assert (told["hardware"], told["world_size"]) == ("h200x4", 4)
    assert "## Backend: cuda" in told["prompt"]
    refused = client.get(f"{address}&{query}")
    assert (refused.status_code, says in refused.json()["error"]["message"]) == (400, True)
