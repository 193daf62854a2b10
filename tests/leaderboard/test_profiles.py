"""PKB's own check beside hidden inputs: the same problems, and which pass one of both only."""

from __future__ import annotations

import pytest
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.models import DataVersion, Harness, Problem, Submission
from tests.leaderboard import factory
from tests.leaderboard.test_page_budgets import FEW_QUERIES, queries_of

pytestmark = pytest.mark.django_db

OK, WRONG, RAISES = Verdict.OK, Verdict.OUTPUT_MISMATCH, Verdict.RUNTIME_ERROR
CAUSES = {OK: None, WRONG: "values", RAISES: "exception", Verdict.TIMEOUT: None}


def judge(model: str, harness: str = "zero-shot", *verdicts: tuple[Verdict, Verdict]) -> None:
    """Have a submission judged on a problem for each pair: under upstream, then hardened."""
    submission = factory.make_submission(model, harness, k=2)
    for number, pair in enumerate(verdicts, 1):
        problem = factory.make_problem(number, f"problem_{number}")
        for profile, verdict in zip(("upstream", "hardened"), pair, strict=True):
            source = f"{factory.SOURCE}# {submission.pk} {number} {profile}\n"
            attempt = 1 + (profile == "hardened")
            kernel = factory.make_kernel(submission, problem, source=source, attempt=attempt)
            run = factory.make_run(kernel, profile=profile)
            factory.finish(run, factory.make_report(run, verdict, cause=CAUSES[verdict]))


@pytest.fixture
def site() -> None:
    judge("Model One", "zero-shot", (OK, OK), (OK, RAISES), (WRONG, OK), (WRONG, WRONG))
    judge("Model Two", "agentic", (OK, RAISES))
    judge("By Hand", Harness.HUMAN, (OK, RAISES))
    once = factory.make_submission("Judged Once")
    factory.make_judged(once, factory.make_problem(9, "last"), OK, profile="upstream")


@pytest.mark.usefixtures("site")
def test_the_page_says_how_many_pass_which_check_and_why(client: Client) -> None:
    page = client.get("/profiles").content.decode()
    assert "once for each submission, 5 problems were judged under both: 3 pass" in page
    assert "PKB's own check; 2 of these fail hidden inputs, and 1 that fail" in page
    assert '<th scope="row" class="first">exception</th><td class="num">2</td>' in page
    assert "hidden-failures" not in page  # one reason is no figure
    assert "Model One" in page
    assert "By Hand" not in page
    assert "Judged Once" not in page
    assert page.count('class="verdict ok"') == 3


@pytest.mark.usefixtures("site")
def test_the_figure_and_the_twins_say_the_same(client: Client) -> None:
    rows = client.get("/figures/both-profiles.csv").content.decode().splitlines()
    assert rows[0] == "Submission,both,upstream_only,hardened_only,neither"
    assert [row.rpartition(")")[2] for row in rows[1:]] == ['",1,1,1,1', '",0,1,0,0']
    problems = client.get("/profiles.json").json()["problems"]
    told = [(one["problem"], one["upstream_cause"], one["hardened_cause"]) for one in problems]
    assert told[:4] == [
        *((1, None, None), (2, None, "exception")),
        *((3, "values", None), (4, "values", "values")),
    ]


@pytest.mark.usefixtures("site")
def test_each_reason_has_its_bar_and_a_kernel_to_look_at(client: Client) -> None:
    judge("Model Three", "zero-shot", (OK, WRONG), (OK, Verdict.TIMEOUT), (OK, RAISES))
    page = client.get("/profiles").content.decode()
    assert page.count('data-name="hidden-failures"') == 1
    assert "The commonest reason is exception: 3 of 5 kernels" in page
    why = page[page.index('id="why"') : page.index('id="submissions"')]
    assert why.count('href="/kernels/') == 3
    assert why.count("Rank 1 returned a wrong sum.") == 3
    rows = client.get("/figures/hidden-failures.csv").content.decode().splitlines()
    assert rows == ["Reason,Kernels", "exception,3", "values,1", "timeout,1"]


@pytest.mark.django_db
def test_the_message_of_a_withheld_source_is_not_shown(client: Client) -> None:
    judge("Model One", "zero-shot", (OK, RAISES))
    assert "Rank 1 returned" in client.get("/profiles").content.decode()
    Submission.objects.update(withholds_source=True)
    DataVersion.objects.bump()
    page = client.get("/profiles").content.decode()
    assert "Rank 1 returned" not in page
    assert "is withheld, as is its source" in page


@pytest.mark.usefixtures("site")
def test_the_page_takes_few_queries(client: Client) -> None:
    assert queries_of("/profiles", client) <= FEW_QUERIES


@pytest.mark.usefixtures("site")
def test_kernels_that_were_not_judged_under_both_are_told(client: Client) -> None:
    assert "more have kernels" not in client.get("/profiles").content.decode()
    one = Submission.objects.get(model__name="Model One")
    factory.make_judged(one, factory.make_problem(5, "once"), OK, profile="upstream")
    factory.make_kernel(one, factory.make_problem(6, "never"))
    factory.make_kernel(one, factory.make_problem(6, "never"), attempt=2)
    factory.make_kernel(one, factory.make_problem(7, "older"), older_task="which sampled")
    factory.make_kernel(one, factory.make_problem(8, "unscored"))
    Problem.objects.filter(number=8).update(scored=False, unscored_reason="Too easy.")
    page = client.get("/profiles").content.decode()
    assert "5 problems were judged under both" in page
    assert "2 more have kernels that were not judged under both here" in page
    told = client.get("/profiles.json").json()["submissions"]
    assert [(one["model"], one["answered"], one["unjudged"]) for one in told] == [
        *(("Model One", 6, 2), ("Model Two", 1, 0)),
    ]


def test_nothing_judged_under_both_is_said_in_words(client: Client) -> None:
    factory.make_judged(factory.make_submission(), factory.make_problem())
    assert "Nothing was judged under both yet" in client.get("/profiles").content.decode()
    assert client.get("/profiles.json").json() == {
        "setting": None,
        "submissions": [],
        "problems": [],
    }
