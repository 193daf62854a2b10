"""Problems by how many models solve them, the reference's headroom, and APIs that do not exist."""

from __future__ import annotations

import pytest
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.metrics.difficulty import Difficulty
from leaderboard.metrics.failures import NO_SUCH_API, cause_in_words, cause_of, mode_of
from leaderboard.models import Problem, ProblemAggregate
from leaderboard.problem_pages.problems import in_order
from leaderboard.read_model.problem_list import ProblemTotals
from tests.leaderboard import factory

pytestmark = pytest.mark.server

NO_MEMBER = '/tmp/cuda.cu(71): error: namespace "at::cuda" has no member "getCurrentCUDAStream"'


@pytest.mark.django_db
def test_a_difficulty_is_told_of_models_not_of_submissions(
    problem: Problem, client: Client
) -> None:
    for model, verdict in (
        *[("One", Verdict.OUTPUT_MISMATCH)] * 3,
        *[("Two", Verdict.OK), ("Three", Verdict.TIMEOUT)],
    ):
        factory.make_judged(factory.make_submission(model), problem, verdict)
    one = ProblemAggregate.objects.get()
    assert (one.submissions, one.models_tried, one.models_solved) == (5, 3, 1)
    (told,) = client.get("/problems.json").json()["problems"]
    assert (told["difficulty"], told["solve_rate"]) == ("hard", pytest.approx(1 / 3))
    assert "<bdi>hard, 1/3</bdi>" in client.get("/problems").content.decode()
    assert len(client.get("/problems.json?difficulty=hard").json()["problems"]) == 1
    assert client.get("/problems.json?difficulty=easy").json()["problems"] == []
    assert client.get("/problems.json?difficulty=x").status_code == 400


@pytest.mark.parametrize(
    ("solved", "tried", "difficulty"),
    [
        (3, 3, "easy"),
        (2, 3, "medium"),
        (1, 3, "hard"),
        (0, 2, "unsolved"),
        (1, 1, ""),
        (0, 0, ""),
    ],
)
def test_bands_of_difficulty(solved: int, tried: int, difficulty: str) -> None:
    assert Difficulty(solved, tried).difficulty == difficulty


def test_headroom_is_what_the_hardware_leaves_above_the_reference() -> None:
    timed = ProblemTotals(baseline_us=50.0, run__bound_us=10.0)
    assert (timed.reference_utilisation, timed.headroom) == (0.2, 5.0)
    for unknown in (ProblemTotals(baseline_us=50.0), ProblemTotals(run__bound_us=10.0)):
        assert (unknown.reference_utilisation, unknown.headroom) == (None, None)


def test_the_hardest_and_the_greatest_headroom_come_first() -> None:
    rows = [
        {"number": number, "solve_rate": rate, "headroom": headroom}
        for number, rate, headroom in ((1, 0.5, 2.0), (2, None, None), (3, 0.0, 9.0))
    ]
    numbers = {sort: [row["number"] for row in in_order(rows, sort)] for sort in SORTED}
    assert numbers == SORTED


SORTED = {"difficulty": [3, 1, 2], "-difficulty": [1, 3, 2], "headroom": [3, 1, 2]}


@pytest.mark.django_db
def test_a_submission_says_why_each_kernel_failed(problem: Problem, client: Client) -> None:
    made = factory.make_submission()
    run = factory.make_judged(made, problem, Verdict.BUILD_ERROR)
    page = client.get(f"/submissions/{made.pk}").content.decode()
    assert "Verdict and why" in page
    assert f"<bdi>{run.message}</bdi>" in page
    (told,) = client.get(f"/submissions/{made.pk}.json").json()["kernels"]
    assert [told[name] for name in ("cause", "message", "evidence")] == [
        run.cause,
        run.message,
        run.evidence,
    ]
    assert "cause,message,evidence" in client.get(f"/submissions/{made.pk}.csv").content.decode()


@pytest.mark.parametrize(
    ("verdict", "evidence"),
    [
        ("build_error", NO_MEMBER),
        ("build_error", 'cuda.cu(64): error: identifier "CUDART_INF_F" is undefined'),
        (
            "build_error",
            "ImportError: a.so: undefined symbol: _ZNK2at10TensorBase8data_ptrIxEEPT_v",
        ),
        ("build_error", "module 'triton.language' has no attribute 'ones'"),
        ("import_error", "ModuleNotFoundError: No module named 'torch.symm'"),
        ("runtime_error", "module 'torch._C._cudart' has no attribute 'cudaMemcpyAsync'"),
    ],
)
def test_an_api_that_does_not_exist_is_a_failure_of_its_own(verdict: str, evidence: str) -> None:
    assert mode_of(verdict, "compiler", evidence) == NO_SUCH_API
    assert cause_in_words(verdict, "compiler", evidence) == NO_SUCH_API


@pytest.mark.parametrize(
    ("verdict", "evidence", "mode"),
    [
        ("build_error", 'error: identifier "my_ptrs" is undefined', "nvcc/syntax errors"),
        ("build_error", None, "nvcc/syntax errors"),
        ("runtime_error", "'NoneType' object has no attribute 'x'", "attribute / name / API typo"),
        ("output_mismatch", NO_MEMBER, "output mismatch"),
        ("ok", NO_MEMBER, "correct"),
    ],
)
def test_a_name_of_its_own_is_none(verdict: str, evidence: str | None, mode: str) -> None:
    cause = "api" if verdict == "runtime_error" else "compiler"
    assert mode_of(verdict, cause, evidence) == mode
    assert cause_of(verdict, cause, evidence) == cause
