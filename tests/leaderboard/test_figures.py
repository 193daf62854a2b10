"""Every figure has a page with all its numbers, and the pages that show it only lead there."""

from __future__ import annotations

import csv
import io
import re
from html import unescape

import pytest
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.figures.findings import endings_found, nearest_found
from leaderboard.models import Harness, Kernel, Making, Problem, Submission
from leaderboard.read_model import summary
from leaderboard.urls import FIGURES
from tests.leaderboard import factory
from tests.leaderboard.browser import cast

pytestmark = [pytest.mark.django_db, pytest.mark.server]

SHOWN = re.compile(r'data-figure="([^"]+)" data-name="([^"]+)"')
TABLE = re.compile(r'<a href="(/figures/[^".]+)">Table</a>')
NOT_OF_THE_CAST = {
    *("hardware-limits", "speedup-by-ranks", "both-profiles"),
    *("published-speedups", "best-over-time", "last-rank", "house-speedups"),
    *("hidden-failures", "mechanism-speedups", "problem-failures", "model-failures"),
}
LABEL = re.compile(r'role="img" aria-label="([^"]+)"')
NOTHING = "Nothing to show yet."


@pytest.fixture
def site() -> dict[str, str]:
    made = cast.make_site()
    Submission.objects.filter(harness="agentic").update(k=2)
    for number in range(3):
        own = factory.make_submission(f"Model {number}")
        for problem in range(91, 94):
            factory.make_judged(own, factory.make_problem(problem, f"p{problem}"), **cast.GPUS)
    known = Problem.objects.get(number=1).payload
    Problem.objects.filter(number__gt=90).update(payload=known)
    costs = {"output_tokens": 1000, "cost_usd": 1.0}
    Making.objects.bulk_create(Making(kernel=one, **costs) for one in Kernel.objects.all())
    summary.rebuild()
    return made


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return response.content.decode()


def test_pages_show_every_figure_and_lead_to_its_numbers(
    site: dict[str, str], client: Client
) -> None:
    found: dict[str, str] = {}
    titles: dict[str, list[str]] = {}
    for name in ("board", "categories", "problems", "problem", "model", "submission", "good"):
        page = text_of(client, f"{site[name]}?ranks=2" if name == "problem" else site[name])
        assert len(SHOWN.findall(page)) == len(TABLE.findall(page)) > 0
        addresses = zip(SHOWN.findall(page), TABLE.findall(page), strict=True)
        found |= {known: unescape(address) for (_, known), address in addresses}
        frames = zip(SHOWN.findall(page), LABEL.findall(page), strict=True)
        titles |= {known: [label] for (_, known), label in frames}
    assert set(found) >= set(FIGURES) - NOT_OF_THE_CAST
    for name, address in found.items():
        page = text_of(client, address)
        assert NOTHING not in page, name
        stem, _, query = address.partition("?")
        rows = list(csv.reader(io.StringIO(text_of(client, f"{stem}.csv?{query}"))))[1:]
        assert page.count('<tr><th scope="row" class="first name">') == len(rows) > 0, name
        titles[name] += LABEL.findall(page)
        assert 'aria-label="Breadcrumbs"' in page
    for name, (here, alone) in titles.items():
        assert here == alone
        assert not here.startswith(f"{FIGURES[name].title}."), f"{here} says nothing"


def test_a_crumb_leads_back_with_the_filters(site: dict[str, str], client: Client) -> None:
    page = text_of(client, "/figures/spreads?p=2&category=expert")
    assert '<a href="/?p=2&amp;category=expert">Leaderboard</a>' in page
    assert "Category: Expert" in page
    assert '<a href="/problems?category=expert">Problems</a>' in text_of(
        client, "/figures/roofline?category=expert"
    )


@pytest.mark.parametrize("name", ["fast-p", "pass-k", "spreads", "utilisations", "failure-modes"])
def test_one_without_data_says_so(name: str, client: Client) -> None:
    assert NOTHING in text_of(client, f"/figures/{name}")
    assert f'"/figures/{name}' not in text_of(client, "/")


def test_a_published_curve_says_that_it_was_read_off_a_plot(client: Client) -> None:
    factory.make_problem()
    made = factory.make_publication()
    says = "Dotted: published; open points were read off the plot"
    assert says in text_of(client, "/")
    assert says in text_of(client, "/figures/fast-p")
    assert says not in text_of(client, "/figures/fast-p?category=tensor")
    (trace,) = client.get("/figures/fast-p.json").json()["data"]
    assert trace["name"] == "Claimed Model (published)"
    # Counts stand in place of what the plot says of the same.
    assert trace["y"] == [32.184, 25.287, None]
    assert trace["text"] == ["counted", "counted", "read off a plot"]
    assert [symbol.endswith("-open") for symbol in trace["marker"]["symbol"]] == [
        False,
        False,
        True,
    ]
    assert set(trace["customdata"]) == {f"/models/{made.results.get(category=None).model.slug}"}
    _, *rows = csv.reader(io.StringIO(text_of(client, "/figures/fast-p.csv")))
    assert [row[0].partition(" (")[2] for row in rows] == [
        "read off the published plot)",
        "published)",
    ]
    assert rows[0][1:3] == ["", ""]
    assert [float(share) for share in rows[1][1:3]] == pytest.approx([2800 / 87, 2200 / 87])


def test_what_more_samples_bring_was_published_of_one_and_of_three(client: Client) -> None:
    factory.make_problem()
    factory.make_publication()
    assert "Dotted: published" in text_of(client, "/")
    assert "Dotted: published" in text_of(client, "/figures/pass-k")
    right, fast = client.get("/figures/pass-k.json").json()["data"]
    assert right["name"] == "Claimed Model (zero-shot, published)"
    assert (right["x"], right["y"]) == ([1, 3], [32.184, 41.379])
    assert (fast["x"], fast["y"]) == ([1, 3], [25.287, 31.034])
    assert {trace["line"]["dash"] for trace in (right, fast)} == {"dot"}
    header, *rows = csv.reader(io.StringIO(text_of(client, "/figures/pass-k.csv")))
    assert header[1:] == ["k = 1, %", "k = 2, %", "k = 3, %"]
    assert [row[2] for row in rows] == ["", ""]
    # How many are fast was published of p = 1 only.
    assert len(client.get("/figures/pass-k.json?p=1.5").json()["data"]) == 1
    assert not client.get("/figures/pass-k.json?backend=cuda").json()["data"]


def published_of(models: list[str]) -> None:
    """One publication of several models, which tells them in this order."""
    told = factory.make_publication(models[0])
    (first,) = told.results.filter(category=None)
    for place, name in enumerate(models[1:], start=1):
        first.pk, first.model = None, factory.make_model(name)
        first.fast_at_1 -= place
        first.save()
    curves = told.payload["fast_p_curve_read_off_plot"]
    shares = curves.pop(models[0])
    curves |= dict.fromkeys(reversed(models), shares)
    told.save()


def test_a_model_has_one_colour_in_every_figure_and_places_are_those_of_the_board(
    client: Client,
) -> None:
    names = ["Model D", "Model A", "Model C", "Model B"]
    published_of(names)
    for n, model in enumerate(["Model One", "Model Two", "Model A"]):
        made = factory.make_submission(model)
        for problem in range(1, 3 + n):
            judged = factory.make_problem(problem, f"problem-{problem}")
            factory.make_judged(made, judged, speedup=1.5)
    Submission.objects.update(k=2)
    colours: dict[str, set[str]] = {}
    for name in ("fast-p", "pass-k", "spreads", "utilisations"):
        for trace in client.get(f"/figures/{name}.json").json()["data"]:
            colour = trace.get("line", {}).get("color") or trace["marker"]["color"]
            colours.setdefault(trace["name"].partition(" (")[0], set()).add(colour)
    assert len(colours) == 6
    assert [len(found) for found in colours.values()] == [1] * 6
    assert len(set.union(*colours.values())) == 6
    drawn = client.get("/figures/fast-p.json").json()["data"]
    published = [t["name"].partition(" (")[0] for t in drawn if "published" in t["name"]]
    assert published == names


def test_bad_filters_and_unknown_figures_are_answered_as_on_pages(client: Client) -> None:
    assert client.get("/figures/fast-p?p=x").status_code == 400
    assert client.get("/figures/fast-q").status_code == 404
    assert client.get("/figures/bursts?run=x").status_code == 404


def test_how_attempts_of_few_end_is_a_sentence(client: Client) -> None:
    problem = factory.make_problem()
    one = factory.make_submission("Model One")
    factory.make_judged(one, problem)
    factory.make_judged(one, factory.make_problem(2, "gemm"), Verdict.TIMEOUT)
    factory.make_judged(factory.make_submission("Model Two"), problem, Verdict.TIMEOUT)
    page = client.get(problem.get_absolute_url()).content.decode()
    assert 'data-name="problem-failures"' not in page
    assert "How attempts end here: 1 correct, 1 deadlock." in page
    page = client.get(f"/models/{one.model.slug}").content.decode()
    assert 'data-name="model-failures"' not in page
    assert f"How attempts end, zero-shot, no. {one.pk}: 1 correct, 1 deadlock." in page


def test_how_attempts_of_three_end_is_a_figure(client: Client) -> None:
    problem = factory.make_problem()
    for harness in (Harness.ZERO_SHOT, Harness.REPEATED, Harness.AGENTIC):
        factory.make_judged(factory.make_submission("Model One", harness), problem)
    figure = client.get("/figures/problem-failures?problem=1").content.decode()
    assert "<h1>How attempts end: 3 of 3 are correct</h1>" in figure
    model = f"/models/{factory.make_model('Model One').slug}"
    for address, name in ((problem.get_absolute_url(), "problem"), (model, "model")):
        page = client.get(address).content.decode()
        assert f'data-name="{name}-failures"' in page
        assert 'aria-label="How attempts end: 3 of 3 are correct. ' in page
        assert "How attempts end here" not in page
        assert "How attempts end, " not in page


def test_the_title_of_a_figure_is_what_it_shows() -> None:
    modes = [{"correct": 3, "deadlock": 2}, {"deadlock": 1, "runtime error": 2}]
    assert endings_found("How", modes) == "How: 3 of 8 are correct, 3 end with deadlock"
    assert endings_found("How", [{"correct": 2}]) == "How: 2 of 2 are correct"
    assert endings_found("How", []) == "How"
    assert nearest_found("How near", []) == "How near"
