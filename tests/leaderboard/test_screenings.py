"""What the check of every problem lets pass, and the room that its tolerances leave."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from leaderboard.models import Problem
from leaderboard.problem_pages.screenings import records_of

pytestmark = pytest.mark.django_db


def finding(answer: str, accepted: bool | None, *errors: float | None) -> dict[str, Any]:
    told = dict(zip(("float32", "bfloat16"), errors, strict=False))
    honest = answer == "reference"
    return {"answer": answer, "honest": honest, "accepted": accepted, "errors": told}


def screened(*findings: dict[str, Any]) -> Problem:
    part = {
        "size": "tiny",
        "seeds": 18,
        "honest_seeds": 102,
        "world_sizes": [2, 4],
        "device": "cpu",
    }
    return Problem(
        number=7, slug="g", payload={"health": {"hardened": {**part, "findings": findings}}}
    )


def test_margins_are_the_worst_on_either_side() -> None:
    (row,) = records_of(
        screened(
            finding("reference", True, 0.2, 0.4),
            finding("zeros", False, 9.0, 3.0),
            finding("constant", False, None),
            finding("rows", None),
        )
    )
    assert (row["worst_honest"], row["cheapest_wrong"], row["cheapest"]) == (0.4, 3.0, "zeros")
    assert (row["accepts_wrongly"], row["rejects_wrongly"]) == ("", "")
    assert (row["profile"], row["ranks"], row["device"]) == ("hardened", "2 4", "CPU")


def test_a_check_that_errs_is_named_and_counted(client: Client, problem: Problem) -> None:
    wrong = screened(finding("zeros", True, 0.5), finding("reference", False, 1.5))
    (row,) = records_of(wrong)
    assert (row["accepts_wrongly"], row["rejects_wrongly"]) == ("zeros", "reference")
    Problem.objects.filter(pk=problem.pk).update(payload={**problem.payload, **wrong.payload})
    assert "the checks of 1 of 1 problems err" in client.get("/problems/health").text


def test_exact_outputs_have_no_cheapest_error() -> None:
    (row,) = records_of(screened(finding("zeros", False, None, None)))
    assert (row["cheapest_wrong"], row["cheapest"]) == (None, "")


def test_the_shipped_problems_are_all_there(client: Client) -> None:
    call_command("sync_problems", verbosity=0)
    page = client.get("/problems/health").text
    assert page.count("<tbody>") == Problem.objects.count()
    told = client.get("/problems/health.json").json()["screenings"]
    assert {row["number"] for row in told} == set(range(1, 88))
    assert {"upstream", "hardened"} == {row["profile"] for row in told}
    assert len(client.get("/problems/health.csv").text.splitlines()) == len(told) + 1
