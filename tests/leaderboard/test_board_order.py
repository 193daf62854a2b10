"""The order of the leaderboard by what is no number, such as a model's name."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.test import Client

from leaderboard.metrics.scores import score
from leaderboard.models import (
    LanguageModel,
    Problem,
    Publication,
    PublishedResult,
    Submission,
    Trust,
)
from leaderboard.read_model.columns import placed
from leaderboard.read_model.entries import BoardRow
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]


@pytest.fixture
def rows() -> None:
    """By speed: Zeta, alpha, Beta; a baseline and a claim."""
    problem = factory.make_problem()
    for name, harness, speedup, day in (
        ("Beta", "repeated", 0.5, 3),
        ("alpha", "agentic", 1.5, 1),
        ("Zeta", "repeated", 3.0, 2),
        ("Reference", "human", 1.0, 4),
    ):
        made = factory.make_submission(name, harness)
        factory.make_judged(made, problem, speedup=speedup)
        at = datetime(2026, 1, day, tzinfo=UTC)
        Submission.objects.filter(pk=made.pk).update(created_at=at)
    LanguageModel.objects.filter(name="Reference").update(is_baseline=True)
    Submission.objects.filter(model__name="alpha").update(trust=Trust.SELF_REPORTED)
    factory.make_publication()


def order(client: Client, sort: str) -> list[str]:
    return [row["model"] for row in client.get(f"/leaderboard.json?sort={sort}").json()["rows"]]


@pytest.mark.parametrize(
    ("sort", "models"),
    [
        ("model", ["alpha", "Beta", "Zeta"]),
        ("-model", ["Zeta", "Beta", "alpha"]),
        ("harness", ["alpha", "Zeta", "Beta"]),
        ("-harness", ["Zeta", "Beta", "alpha"]),
        ("date", ["Beta", "Zeta", "alpha"]),
        ("-date", ["alpha", "Zeta", "Beta"]),
        ("trust", ["Zeta", "Beta", "alpha"]),
        ("-trust", ["alpha", "Zeta", "Beta"]),
    ],
)
@pytest.mark.usefixtures("rows")
def test_words_and_dates_order_rows_both_ways(sort: str, models: list[str], client: Client) -> None:
    assert order(client, sort) == ["Reference", *models, "Claimed Model"]
    names = re.findall(r"<bdi>([\w ]+)</bdi></a><small", client.get(f"/?sort={sort}").text)
    assert names == ["Reference", *models, "Claimed Model"]
    table = client.get(f"/leaderboard.csv?sort={sort}").text.splitlines()[1:]
    assert [line.split(",")[2] for line in table] == names
    rows = client.get(f"/api/v1/leaderboard?sort={sort}").json()["rows"]
    assert [row["model"] for row in rows] == names


@pytest.mark.usefixtures("rows")
def test_places_stay_those_of_the_measure(client: Client) -> None:
    best = {row["model"]: row["place"] for row in client.get("/leaderboard.json").json()["rows"]}
    found = client.get("/leaderboard.json?sort=-model").json()["rows"]
    assert {row["model"]: row["place"] for row in found} == best
    assert [row["tie_group"] for row in found] == [None] * len(found)


@pytest.mark.usefixtures("rows")
def test_what_has_no_date_comes_last_in_both_directions(client: Client) -> None:
    undated = Publication.objects.create(slug="undated", citation="Somebody.", payload={})
    claim = PublishedResult.objects.get(category=None)
    claim.pk, claim.publication, claim.model = None, undated, factory.make_model("Undated")
    claim.save()
    for sort in ("date", "-date"):
        assert order(client, sort)[-2:] == ["Claimed Model", "Undated"]


@pytest.mark.usefixtures("rows")
def test_a_head_says_the_direction_and_leads_to_the_other(client: Client) -> None:
    page = client.get("/?harness=repeated").text
    assert '<a href="/?harness=repeated&amp;sort=model">Model</a>' in page
    assert 'aria-sort="descending"><a href="/?harness=repeated&amp;sort=-fast1">' in page
    newest = client.get("/?sort=date").text
    assert '<th scope="col" aria-sort="descending"><a href="/?sort=-date">Date</a>' in newest
    a_to_z = client.get("/?sort=model").text
    assert 'aria-sort="ascending"><a href="/?sort=-model">Model</a>' in a_to_z
    assert a_to_z.count("aria-sort") == 1
    z_to_a = client.get("/?sort=-model").text
    assert 'aria-sort="descending"><a href="/?sort=model">Model</a>' in z_to_a


@pytest.mark.parametrize(("sort", "models"), [("backends", "bcda"), ("-backends", "dcba")])
def test_backends_are_ordered_by_name_and_unknown_ones_last(sort: str, models: str) -> None:
    backends = {"a": (), "b": ("cuda",), "c": ("cuda", "triton"), "d": ("triton",)}
    entries = [
        BoardRow(
            model=model, slug=model, vendor="", harness="", trust="verified", url="", date=None,
            score=score([], 1), backends=own,
        )
        for model, own in backends.items()
    ]  # fmt: skip
    assert "".join(row.entry.model for row in placed(entries, sort)) == models


def test_a_baseline_can_be_ticked_too_and_a_claim_cannot(client: Client) -> None:
    problem = factory.make_problem()
    ours, baseline = factory.make_submission("Model One"), factory.make_submission("The baseline")
    type(baseline.model).objects.filter(pk=baseline.model.pk).update(is_baseline=True)
    factory.make_judged(ours, problem)
    factory.make_publication()
    assert 'name="with"' not in client.get("/").content.decode()
    factory.make_judged(baseline, problem)
    page = client.get("/").content.decode()
    ticks = re.findall(r'name="with" value="(\d+)" form="compare"', page)
    assert sorted(map(int, ticks)) == [ours.pk, baseline.pk]
    assert all(f'id="s{number}"' in page for number in ticks)
    assert page.count(f"<small><bdi>Vendor</bdi>, no. {ours.pk}</small>") == 1
    assert page.count(" no. ") == 1


@pytest.mark.usefixtures("rows")
def test_people_stand_apart_and_hold_no_place(client: Client) -> None:
    ours = factory.make_submission("Somebody", "human")
    factory.make_judged(ours, Problem.objects.get(), speedup=9.0)
    found = client.get("/leaderboard.json").json()["rows"]
    assert [row["model"] for row in found[:2]] == ["Reference", "Somebody"]
    assert [row["place"] is None for row in found[:3]] == [True, True, False]
    page = client.get("/").content.decode()
    assert '<tr class="human">' in page
    assert "Somebody" not in page[: page.index('class="filters"')]  # where the best is named
