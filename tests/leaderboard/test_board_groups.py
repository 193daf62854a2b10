"""What was published, checked and timed of one model stands together on the board."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.kit.links import url
from leaderboard.models import Problem, PublishedResult, Submission
from tests.leaderboard import factory
from tests.leaderboard.test_page_budgets import FRONT_QUERIES, queries_of

pytestmark = [pytest.mark.django_db, pytest.mark.server]
ROW = re.compile(
    r'<tr(?: class="([a-z ]+)")?><td class="(place[a-z ]*)">([^<]*).*?<bdi>([\w ]+)</bdi>',
    re.DOTALL,
)


@pytest.fixture
def rows() -> list[Submission]:
    """Two models that were checked, one of them timed and claimed too; another was claimed only."""
    problem = factory.make_problem()
    own = [factory.make_submission(name) for name in ("Both", "Other")]
    for submission in own:
        factory.make_judged(submission, problem, placement="shared")
        factory.make_judged(submission, factory.make_problem(2, "b"), placement="shared")
    factory.make_judged(own[0], problem)
    told = factory.make_publication("Both")
    alone = told.results.get(category=None)
    alone.pk, alone.model = None, factory.make_model("Alone")
    alone.save()
    return own


@pytest.mark.usefixtures("rows")
def test_claims_and_times_stand_under_what_was_checked_of_the_model(client: Client) -> None:
    page = client.get("/?placement=shared").content.decode()
    kinds = [(kind, name) for kind, _, _, name in ROW.findall(page)]
    assert kinds == [
        ("", "Both"),
        ("claimed under", "Both"),
        ("", "Other"),
        ("claimed", "Alone"),
    ]
    assert page.count("Published, not run here") == 1
    assert page.index("Published, not run here") < page.rindex(">Alone<")
    assert page.count("<small>4x H100</small>") == 1  # where a claim was timed
    places = {name: place for kind, _, place, name in ROW.findall(page) if not kind}
    assert places == {"Both": "1–2", "Other": "1–2"}


@pytest.mark.usefixtures("rows")
def test_a_board_that_nobody_narrowed_has_both_placements(client: Client) -> None:
    found = client.get("/leaderboard.json").json()
    page = client.get("/").content.decode()
    other = found["elsewhere"]
    assert {found["setting"]["placement"], other["setting"]["placement"]} == {"full", "shared"}
    kinds = [(kind, name) for kind, _, _, name in ROW.findall(page)]
    assert kinds[:3] == [("", "Both"), ("other under", "Both"), ("claimed under", "Both")]
    assert [(row["model"], row["correct"]) for row in other["rows"]] == [("Both", 2), ("Other", 2)]
    assert 'class="chip checked"' in page
    assert 'class="chip verified"' in page
    assert page.count(f'id="s{other["rows"][0]["submission"]}"') == 1
    assert client.get("/leaderboard.json?backend=pytorch").json()["elsewhere"] is None
    assert queries_of("/", client) <= FRONT_QUERIES


def test_equal_rows_stand_by_what_is_right_then_by_name(client: Client) -> None:
    problems = [factory.make_problem(n, f"p{n}") for n in (1, 2)]
    for name, right in (("B none", 0), ("C one", 1), ("A none", 0)):
        submission = factory.make_submission(name)
        for n, problem in enumerate(problems):
            verdict = Verdict.OK if n < right else Verdict.OUTPUT_MISMATCH
            factory.make_judged(submission, problem, verdict, speedup=0.5)
    rows = client.get("/leaderboard.json?sort=fast1").json()["rows"]
    assert [row["model"] for row in rows] == ["C one", "A none", "B none"]
    assert {row["place"] for row in rows} == {"1="}


def test_a_claim_says_where_it_was_timed(client: Client) -> None:
    factory.make_problem()
    factory.make_publication()
    assert PublishedResult.objects.count() == 2
    assert "4x H100" in client.get("/").content.decode()


def test_a_models_page_has_what_was_timed_under_what_was_checked(
    client: Client, rows: list[Submission]
) -> None:
    both, other = rows
    for number in (3, 4):  # what was judged more than twice as often stands first
        factory.make_judged(both, factory.make_problem(number, f"p{number}"), placement="shared")
    page = client.get(url("model", both.model.slug)).content.decode()
    under = re.findall(r'<tr class="under">.*?href="([^"]+)">timed</a><small>([^<]*)', page)
    assert len(under) == 1
    ((address, where),) = under
    assert "one device" not in where
    assert "placement=shared" not in address
    assert client.get(address.replace("&amp;", "&")).status_code == 200
    told = client.get(url("model", both.model.slug) + ".json").json()
    (timed,) = told["timed"]
    assert timed["setting"]["placement"] == "full"
    assert (timed["correct"], timed["attempted"]) == (1, 1)
    assert ">timed</a>" not in client.get(url("model", other.model.slug)).content.decode()


def test_a_models_page_repeats_no_row_that_was_timed(client: Client) -> None:
    submission = factory.make_submission("Timed")
    factory.make_judged(submission, factory.make_problem())
    page = client.get(url("model", submission.model.slug))
    assert ">timed</a>" not in page.content.decode()
    assert client.get(url("model", submission.model.slug) + ".json").json()["timed"] == []


def test_a_board_says_by_what_brackets_are_drawn(problem: Problem, client: Client) -> None:
    for name in ("A", "B"):
        factory.make_judged(factory.make_submission(name), problem)
    said = "are statistically tied: on the problems that both were judged on"
    assert said in client.get("/?sort=pass1").text
    for sort in ("speedup", "-model"):
        page = client.get(f"/?sort={sort}").text
        assert "</a> are drawn only where a share sorts the board." in page
        assert said not in page
    assert "Sorted by anything else, a board draws none." in client.get("/methodology").text
