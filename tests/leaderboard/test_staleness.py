"""Pages and API say why a result does not count, and their numbers agree."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.test import Client

from evaluator.messages.report import JUDGE_VERSION, Isolation, Verdict
from leaderboard.models import Kernel, Problem, Run, Submission
from leaderboard.read_model import summary
from leaderboard.site_pages.search_index import find
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api

pytestmark = [pytest.mark.django_db, pytest.mark.server]
OLDER_PROBLEM = "judged on an older version of the problem"
OLDER_JUDGE = f"judged by an older judge (6, now {JUDGE_VERSION})"


def judged(submission: Submission, problem: Problem, **changes: Any) -> Run:
    run = factory.make_run(factory.make_kernel(submission, problem, source=f"{factory.SOURCE}#"))
    return factory.finish(run, factory.make_report(run, **changes))


@pytest.fixture
def mixed(problem: Problem) -> Submission:
    """Results that count for two problems, and that do not for five others: of an older version of
    the problem (two), of a problem that is not scored, of another setting, without isolation."""
    made = factory.make_submission("Mixed")
    judged(made, problem)
    judged(made, factory.make_problem(2, "wrong"), verdict=Verdict.OUTPUT_MISMATCH)
    for number in (3, 4):
        judged(made, factory.make_problem(number, f"rewritten{number}"))
    judged(made, factory.make_problem(5, "unscored"))
    elsewhere = factory.make_run(
        factory.make_kernel(made, factory.make_problem(6, "elsewhere")), size="standard"
    )
    factory.finish(elsewhere, factory.make_report(elsewhere))
    judged(made, factory.make_problem(7, "bare"), isolation=Isolation.NONE)
    Problem.objects.filter(number__in=(3, 4)).update(digest="f" * 64)
    Problem.objects.filter(number=5).update(scored=False, unscored_reason="Too easy.")
    summary.rebuild()
    return made


WHY = {
    3: OLDER_PROBLEM,
    4: OLDER_PROBLEM,
    5: "its problem is not scored",
    6: "judged in another setting",
    7: "judged without isolation",
}


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_submissions_verdicts_agree_with_its_score(mixed: Submission, client: Client) -> None:
    told = client.get(f"/submissions/{mixed.pk}.json").json()
    assert (told["score"]["correct"], told["score"]["attempted"]) == (1, 2)
    assert {row["number"]: row["why_not"] for row in told["kernels"] if row["why_not"]} == WHY
    assert [row["number"] for row in told["kernels"] if row["counts"]] == [1, 2]
    text = page(client, f"/submissions/{mixed.pk}")
    for link in ("all 7", "ok 1", "output mismatch 1", "does not count 5"):
        assert f">{link}</a>" in text
    assert "5 attempts do not count towards the scores above" in text
    assert f'href="/rejudge?submission={mixed.pk}"' in text
    for why in WHY.values():
        assert f"{why}: does not count" in text


def test_what_does_not_count_is_a_list_of_its_own(mixed: Submission, client: Client) -> None:
    address = f"/submissions/{mixed.pk}"
    for verdict, numbers in (("uncounted", [3, 4, 5, 6, 7]), ("ok", [1])):
        rows = client.get(f"{address}.json?verdict={verdict}").json()["kernels"]
        assert [row["number"] for row in rows] == numbers
        table = io.StringIO(client.get(f"{address}.csv?verdict={verdict}").content.decode())
        assert [int(row["number"]) for row in csv.DictReader(table)] == numbers
    shown = page(client, f"{address}?verdict=uncounted")
    assert "rewritten3" in shown
    assert "Problem allreduce" not in shown.partition('id="kernels"')[2]


def test_its_figures_draw_what_counts(mixed: Submission, client: Client) -> None:
    table = client.get(f"/figures/speedups.csv?submission={mixed.pk}").content.decode()
    assert [line.split(",")[0] for line in table.splitlines()[1:]] == ["Problem allreduce"]


def test_a_later_run_that_does_not_count_hides_none_that_does(
    problem: Problem, client: Client
) -> None:
    made = factory.make_submission()
    run = judged(made, problem)
    bare = factory.make_run(run.kernel)
    factory.finish(bare, factory.make_report(bare, isolation=Isolation.NONE))
    told = client.get(f"/submissions/{made.pk}.json").json()
    assert told["score"]["correct"] == 1
    assert [(row["run"], row["counts"]) for row in told["kernels"]] == [(str(run.pk), True)]
    assert "ok 1</a>" in page(client, f"/submissions/{made.pk}")


def test_a_submission_all_of_which_counts_says_nothing(problem: Problem, client: Client) -> None:
    made = factory.make_submission()
    judged(made, problem)
    text = page(client, f"/submissions/{made.pk}")
    assert "does not count" not in text
    assert "/rejudge" not in text


def test_a_model_tells_how_many_problems_do_not_count(mixed: Submission, client: Client) -> None:
    address = f"/models/{mixed.model.slug}"
    assert client.get(f"{address}.json").json()["handed_in"] == 7
    text = page(client, address)
    assert "Solved 1 of 2 problems" in text
    assert "Of 7 problems with kernels 5 do not count here" in text


def test_a_model_is_told_nothing_of_private_results(mixed: Submission, client: Client) -> None:
    factory.make_judged(factory.make_submission("Mixed"), factory.make_problem(8, "open"))
    Submission.objects.filter(pk=mixed.pk).update(visibility="private")
    assert client.get(f"/models/{mixed.model.slug}.json").json()["handed_in"] == 1


def test_a_problem_without_results_tells_of_older_ones(mixed: Submission, client: Client) -> None:
    text = page(client, "/problems/3-rewritten3")
    assert "No kernel has been judged on this version of the problem" in text
    assert "Kernels were judged on an older version of the problem" in text
    assert 'href="/rejudge?problem=rewritten3"' in text


@pytest.mark.parametrize(("number", "says"), [(3, f"{OLDER_PROBLEM}: it does not count."), (1, "")])
def test_a_run_and_a_kernel_say_so(
    mixed: Submission, number: int, says: str, client: Client
) -> None:
    run = Run.objects.get(kernel__submission=mixed, kernel__problem=number)
    for address in (f"/runs/{run.pk}", f"/kernels/{run.kernel.source_id}?run={run.pk}"):
        box = page(client, address).partition('id="verdict"')[2].partition("</div>")[0]
        assert (says[1:] in box) if says else ("older" not in box)
    assert client.get(f"/runs/{run.pk}.json").json()["stale"] == (OLDER_PROBLEM if says else None)
    rows = client.get(f"/kernels/{run.kernel.source_id}.json?run={run.pk}").json()["runs"]
    assert {row["stale"] for row in rows if row["id"] == str(run.pk)} == {
        OLDER_PROBLEM if says else ""
    }


def test_attempts_beside_a_kernel_say_so(problem: Problem, client: Client) -> None:
    made = factory.make_submission(k=2)
    for _ in range(2):
        factory.make_judged(made, problem)
    Problem.objects.update(digest="f" * 64)
    source = Kernel.objects.filter(submission=made)[0].source_id
    told = client.get(f"/kernels/{source}.json").json()["attempts"]
    assert [row["stale"] for row in told] == [OLDER_PROBLEM] * 2
    assert page(client, f"/kernels/{source}").count(f"{OLDER_PROBLEM}</span>") == 3


def test_the_api_says_so(mixed: Submission, api: Api) -> None:
    lines = api().get(f"/api/v1/runs?submission={mixed.pk}").json()["results"]
    told = {line["problem_number"]: line["stale"] for line in lines}
    assert told == {number: OLDER_PROBLEM if number in (3, 4) else None for number in range(1, 8)}
    run = Run.objects.get(kernel__submission=mixed, kernel__problem=4)
    assert api().get(f"/api/v1/runs/{run.pk}").json()["stale"] == OLDER_PROBLEM


def test_lists_of_runs_say_so(mixed: Submission, client: Client) -> None:
    recent = client.get("/status.json").json()["recent"]
    assert sum(row["stale"] == OLDER_PROBLEM for row in recent) == 2
    assert page(client, "/status").count(f"{OLDER_PROBLEM}</span>") == 2
    run = Run.objects.get(kernel__submission=mixed, kernel__problem=3)
    (hit,) = (one for one in find(str(run.pk)) if one.kind == "Run")
    assert hit.note == f"Problem rewritten3: ok, {OLDER_PROBLEM}"


def test_an_older_judge_is_named_wherever_its_results_are(problem: Problem, client: Client) -> None:
    made = factory.make_submission("Early")
    run = judged(made, problem, judge_version="6")
    now = f"(now {JUDGE_VERSION})"
    for address in ("/", f"/submissions/{made.pk}", f"/models/{made.model.slug}"):
        assert now in page(client, address), address
    assert "by an older version of the judge" in page(client, f"/submissions/{made.pk}")
    box = page(client, f"/runs/{run.pk}").partition('id="verdict"')[2]
    assert f"{OLDER_JUDGE[1:]}: it counts beside results of that judge only." in box
    rows = client.get(f"/submissions/{made.pk}.json").json()["kernels"]
    assert [row["counts"] for row in rows] == [True]
