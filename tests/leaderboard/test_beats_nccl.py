"""What beats NCCL: the site's own kernels by family, then how one writes them."""

from __future__ import annotations

from collections import Counter

import pytest
from django.test import Client

from leaderboard.board_pages import beats_nccl
from leaderboard.board_pages.house_text import families, rendered
from leaderboard.models import Harness, LanguageModel, Submission
from leaderboard.models.model_names import HOUSE
from leaderboard.read_model.house_results import mechanism_in
from leaderboard.runs.house_kernels import FILES
from tests.leaderboard import factory
from tests.leaderboard.test_page_budgets import FEW_QUERIES, queries_of

HEADER = "# mechanism: stores into peers, in\n#   steps; one launch\n# limiter: x\n"
# By the number of the problem, of three families.
SPEEDUPS = {1: 2.0, 4: 3.0, 7: 4.0, 2: 1.5, 3: 1.6, 5: 1.7, 11: 5.0, 12: 6.0, 13: 0.5}


def make_house() -> Submission:
    submission = factory.make_submission("House kernels", Harness.HUMAN)
    LanguageModel.objects.filter(pk=submission.model_id).update(slug=HOUSE, is_baseline=True)
    return submission


def judge(submission: Submission, number: int, speedup: float) -> None:
    problem = factory.make_problem(number, f"problem_{number}")
    kernel = factory.make_kernel(submission, problem, source=f"{HEADER}# {number}\n")
    run = factory.make_run(kernel)
    factory.finish(run, factory.make_report(run, speedup=speedup))


@pytest.fixture
def site(db: None) -> None:
    submission = make_house()
    for number, speedup in SPEEDUPS.items():
        judge(submission, number, speedup)


def test_every_house_kernel_is_of_one_family() -> None:
    counts = Counter(number for family in families() for number in family.problems)
    written = {int(path.name.partition("_")[0]) for path in FILES.glob("*.py")}
    assert set(counts) == written
    assert set(counts.values()) == {1}
    assert all(family.why.endswith(".") for family in families())


def test_every_house_kernel_says_how_it_works() -> None:
    assert mechanism_in(HEADER) == "stores into peers, in steps; one launch"
    assert mechanism_in("import torch\n") == ""
    assert all(mechanism_in(path.read_text()) for path in FILES.glob("*.py"))


def test_the_page_teaches_and_leaves_measurements_to_results() -> None:
    assert {"text": "Calls back to back", "anchor": "calls-back-to-back"} in rendered().contents
    assert "Beside NCCL" not in rendered().body
    assert "style=" not in rendered().body


@pytest.mark.usefixtures("site")
def test_the_title_is_the_finding_and_families_stand_by_what_they_gain(client: Client) -> None:
    page = client.get("/beats-nccl").content.decode()
    assert "<h1>Kernels written by hand beat NCCL on 8 of 9 problems</h1>" in page
    assert "their median speedup is 2.00×" in page
    products, reductions, scatter = (
        page.index(f"<h3 id={name}")
        for name in ('"products', '"reductions-with-an-epilogue', '"gather')
    )
    assert products < reductions < scatter
    assert page.count("stores into peers, in steps; one launch") == len(SPEEDUPS)
    assert "Products with gathered or summed operands gain most (median 5.00×)" in page
    assert "gather, scatter, all-to-all least (1.60×)" in page
    assert '<section class="citation"' in page


@pytest.mark.usefixtures("site")
def test_the_twins_and_the_figure_say_the_same(client: Client) -> None:
    data = client.get("/beats-nccl.json").json()
    told = {one["name"]: (one["kernels"], one["faster"], one["median"]) for one in data["families"]}
    assert told["Reductions with an epilogue"] == (3, 3, pytest.approx(3.0))
    assert told["Products with gathered or summed operands"] == (3, 2, pytest.approx(5.0))
    assert len(client.get("/beats-nccl.csv").content.decode().splitlines()) == 1 + len(SPEEDUPS)
    rows = client.get("/figures/house-speedups.csv").content.decode().splitlines()[1:]
    assert [row.rpartition('"')[2].split(",")[1] for row in rows] == ["3", "3", "3"]


@pytest.mark.usefixtures("site")
def test_the_first_page_leads_there_with_the_same_numbers(client: Client) -> None:
    page = client.get("/").content.decode()
    assert '<a href="/beats-nccl"><b>2× by hand</b>' in page
    assert queries_of("/beats-nccl", client) <= FEW_QUERIES


@pytest.mark.django_db
def test_without_results_the_page_still_teaches(client: Client) -> None:
    page = client.get("/beats-nccl").content.decode()
    assert "No kernel of this site was timed yet" in page
    assert '<h2 id="flags">' in page
    assert "data-figure" not in page


@pytest.mark.django_db
def test_few_kernels_are_no_figure(client: Client) -> None:
    judge(make_house(), 1, 2.0)
    page = client.get("/beats-nccl").content.decode()
    assert "beat NCCL on 1 of 1 problem<" in page
    assert "data-figure" not in page
    assert beats_nccl.finding([]) == ""


@pytest.mark.django_db
def test_the_page_leads_to_the_setting_with_most_kernels(client: Client) -> None:
    submission = make_house()
    other = factory.make_submission()
    judge(submission, 1, 2.0)
    for number in (1, 2):
        problem = factory.make_problem(number, f"problem_{number}")
        factory.make_judged(submission, problem, size="large")
        factory.make_judged(other, problem)
    page = client.get("/beats-nccl").content.decode()
    assert "More kernels were timed in another setting" in page
    assert "size=large" in page


@pytest.mark.django_db
@pytest.mark.parametrize("tail", ["", ".json"])
def test_the_address_it_had_leads_there(tail: str, client: Client) -> None:
    answer = client.get(f"/house-kernels{tail}?size=large")
    assert (answer.status_code, answer["Location"]) == (301, f"/beats-nccl{tail}?size=large")
