"""Kernels that try to make their verdict our error, through site and judge: each attempt counts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evaluator.messages.codec import encode
from evaluator.messages.report import Isolation, Verdict
from evaluator.sandbox.hardware import environment
from leaderboard.models import Problem, Run, Status, Summary
from leaderboard.runs import evaluation
from tests.evaluator.judging import end_kept, judged
from tests.evaluator.kernel_files import named
from tests.leaderboard import factory
from tests.leaderboard.running import HELLO, claim, fresh, say_hello

pytestmark = [pytest.mark.django_db, pytest.mark.alone]
ATTEMPTS = 3


@pytest.mark.parametrize(
    "name",
    [
        "forged_end_by_a_truth_value",
        pytest.param("forged_end_of_many_digits", marks=pytest.mark.similar),
        pytest.param("forged_claim_garbage", marks=pytest.mark.similar),
    ],
)
def test_three_attempts_that_attack_the_judge_count_as_failed(name: str) -> None:
    source = named("misbehaving", name).job.source
    problem = _judges_own()
    submission = factory.make_submission(k=ATTEMPTS)
    with end_kept():
        for attempt in range(1, ATTEMPTS + 1):
            kernel = factory.make_kernel(submission, problem, source=source, attempt=attempt)
            run = _judged(factory.make_run(kernel))
            assert (run.status, run.tries) == (Status.DONE, 1), run.last_error
            assert run.verdict not in (Verdict.OK, Verdict.INFRA_ERROR)
    row = Summary.objects.get()
    assert (row.made, row.correct) == (ATTEMPTS, 0)


def _judged(run: Run) -> Run:
    """Once, as a worker does it: claimed, judged, and finished with what crosses the wire."""
    own = environment()
    say_hello(
        replace(
            HELLO, host=own.host, hardware=own.hardware, isolation=Isolation.BWRAP_CGROUP_SECCOMP
        )
    )
    lease = claim(run, own.host)
    report = judged(lease.job, hurried=True)
    evaluation.finish(run.id, lease.holding, json.loads(json.dumps(encode(report))))
    return fresh(run)


def _judges_own() -> Problem:
    """The problem with the digest of its file, which a report must be about."""
    import problems

    problem = factory.make_problem()
    problem.digest = problems.load(problems.find("allreduce")).digest
    problem.save()
    return problem
