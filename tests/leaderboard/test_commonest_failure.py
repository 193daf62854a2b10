"""By what kernels fail most often is said where it is one failure and more than one kernel."""

from __future__ import annotations

import pytest
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.models import Problem
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db
HANGS, WRONG = Verdict.TIMEOUT, Verdict.OUTPUT_MISMATCH


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ((Verdict.OK, HANGS, HANGS, WRONG), "fail most often by deadlock, 66.7 % of failures"),
        ((Verdict.OK, HANGS), ""),
        ((HANGS, HANGS, WRONG, WRONG), ""),
        ((Verdict.OK,), ""),
    ],
)
def test_the_head_of_a_problem_says_by_what_most_fail(
    verdicts: tuple[Verdict, ...], said: str, problem: Problem, client: Client
) -> None:
    for number, verdict in enumerate(verdicts):
        factory.make_judged(factory.make_submission(f"Model {number}"), problem, verdict)
    text = client.get(problem.get_absolute_url()).content.decode()
    assert said in text
    assert bool(said) == ("fail most often" in text)
