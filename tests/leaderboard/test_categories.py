"""Models by category, the heat map, and the page of one category."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.board_pages.taxonomy import FAMILIES, OTHERS, families
from leaderboard.models import Problem, PublishedResult, Submission
from leaderboard.submissions import moderation
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]


@pytest.fixture
def slugs() -> dict[str, str]:
    """A claim, and a model that solved one of two scored problems in half of its attempts."""
    factory.make_publication()
    one = factory.make_problem(1, "allreduce", "tensor")
    factory.make_problem(2, "gemm", "tensor")
    off = factory.make_problem(3, "loss", "tensor")
    Problem.objects.filter(pk=off.pk).update(scored=False, unscored_reason="Only 8 ranks.")
    factory.make_problem(4, "dispatch", "expert")
    ours = factory.make_submission("Model One", k=2)
    factory.make_judged(ours, one, speedup=2.0)
    factory.make_judged(ours, one, Verdict.TIMEOUT)
    return {name: factory.make_model(name).slug for name in ("Model One", "Claimed Model")}


def records(client: Client, query: str = "") -> dict[tuple[str, str], dict[str, Any]]:
    rows = client.get(f"/categories.json{query}").json()["rows"]
    return {(row["model"], row["category"]): row for row in rows}


def test_the_table_has_the_shape_of_the_published_one(
    slugs: dict[str, str], client: Client
) -> None:
    found = records(client)
    assert found["Claimed Model", "tensor"]["passk"] == pytest.approx(2 / 17)
    assert found["Claimed Model", "all"]["problems"] == 87
    ours = found["Model One", "tensor"]
    assert (ours["problems"], ours["pass1"], ours["passk"]) == (2, 0.25, 0.5)
    assert found["Model One", "expert"]["pass1"] == 0.0
    page = client.get("/categories").content.decode()
    arrow = '<span class="of" aria-label="to">\u2009→\u2009</span>'
    assert f'<td class="num change">0.5{arrow}1</td>' in page
    assert f'<td class="num change">28{arrow}36</td>' in page


def test_models_are_chosen_by_the_address(slugs: dict[str, str], client: Client) -> None:
    only = records(client, f"?models={slugs['Claimed Model']}")
    assert {model for model, _ in only} == {"Claimed Model"}
    both = ",".join(slugs.values())
    assert {model for model, _ in records(client, f"?models={both}")} == set(slugs)
    page = client.get(f"/categories?models={slugs['Model One']}").content.decode()
    assert f'href="/categories?models={both}#table"' in page
    refused = client.get("/categories?models=nobody")
    assert refused.status_code == 400
    assert slugs["Model One"] in refused.content.decode()


def test_the_heat_map_shows_the_metric_of_the_models_chosen(
    slugs: dict[str, str], client: Client
) -> None:
    query = f"metric=passk&models={slugs['Model One']}"
    spec = client.get(f"/figures/category-heat.json?{query}").json()
    go.Figure(spec)
    (trace,) = spec["data"]
    assert trace["y"] == ["Tensor Parallel", "Expert Parallel", "All"]
    assert trace["z"] == [[50.0], [0.0], [33.3]]
    assert f"/figures/category-heat.json?models={slugs['Model One']}&amp;metric=passk" in (
        client.get(f"/categories?{query}").content.decode()
    )


def test_submissions_of_one_model_are_columns_of_their_own(
    slugs: dict[str, str], client: Client
) -> None:
    first = Submission.objects.get()
    second = factory.make_submission("Model One")
    factory.make_judged(second, Problem.objects.get(pk=1), speedup=0.5)
    for claim in list(PublishedResult.objects.all()):
        claim.pk, claim.harness = None, "agentic"
        claim.save()
    (trace,) = client.get("/figures/category-heat.json").json()["data"]
    every = dict(zip(trace["x"], trace["z"][-1], strict=True))
    assert every == {
        f"Model One (zero-shot, no. {first.pk})": 16.7,
        f"Model One (zero-shot, no. {second.pk})": 33.3,
        "Claimed Model (zero-shot, published)": 32.2,
        "Claimed Model (agentic, published)": 32.2,
    }
    bars = client.get("/figures/failure-modes.json").json()["data"][0]["y"]
    assert {name.partition(", n =")[0] for name in bars if "One" in name} == {
        name for name in every if "One" in name
    }


def test_a_parameter_of_other_pages_changes_nothing(slugs: dict[str, str], client: Client) -> None:
    assert client.get("/categories?category=expert&source=x").content == (
        client.get("/categories").content
    )


def test_the_tree_marks_every_problem(slugs: dict[str, str], client: Client) -> None:
    page = client.get("/categories").content.decode()
    assert page.count('class="u0"') == 1
    assert page.count('class="u1"') == 2
    assert page.count('class="u2"') == 1
    assert page.count('<span class="tight"><span class="swatch u') == 3
    assert 'href="/categories/tensor"' in page


def test_families_hold_every_category_of_the_benchmark_once() -> None:
    named = [category for members in FAMILIES.values() for category in members]
    assert len(named) == len(set(named))
    groups = families([*named, "other"])
    assert groups[OTHERS] == ["other"]
    listed = [category for members in groups.values() for category in members]
    assert sorted(listed) == sorted([*named, "other"])


def test_one_category_has_its_problems_models_and_failures(
    slugs: dict[str, str], client: Client
) -> None:
    found = client.get("/categories/tensor.json").json()
    by_number = {row["number"]: row for row in found["problems"]}
    assert set(by_number) == {1, 2, 3}
    assert (by_number[1]["solved"], by_number[1]["tried"]) == (1, 1)
    assert by_number[1]["best_speedup"] == pytest.approx(2.0)
    assert by_number[1]["best_model"] == "Model One"
    assert by_number[2]["tried"] == 0
    page = client.get("/categories/tensor").content.decode()
    assert "Not scored: Only 8 ranks." in page
    assert "Claimed Model" in page
    assert '0<span class="of">/0' not in page
    assert "/figures/failure-modes.json?category=tensor" in page
    assert client.get("/categories/tensor.csv").content.decode().count("\n") == 4


def test_the_wire_is_that_of_the_setting_as_on_the_list_of_problems(
    slugs: dict[str, str], client: Client
) -> None:
    one = Problem.objects.get(number=1)
    costs = {"tiny": {"2": {"wire_bytes": 512.0}}, "standard": {"4": {"wire_bytes": 4096.0}}}
    one.payload = {**one.payload, "costs": costs}
    one.save()
    for page, head in (("/categories/tensor", "2 ranks"), ("/problems", "least of 2 ranks")):
        found = client.get(f"{page}.json").json()["problems"]
        assert [row["wire_bytes"] for row in found if row["number"] == 1] == [512.0], page
        assert f"<small>{head}</small>" in client.get(page).content.decode()


def test_a_baseline_solves_nothing_for_the_models(slugs: dict[str, str], client: Client) -> None:
    reference = factory.make_submission("PyTorch + NCCL", "human")
    factory.make_judged(reference, Problem.objects.get(number=2), speedup=1.0)
    moderation.edit(reference.model, reference.owner, is_baseline=True)
    assert client.get("/categories").content.decode().count('class="u0"') == 1
    found = client.get("/categories/tensor.json").json()["problems"]
    assert [row["solved"] for row in found] == [1, 0, 0]


@pytest.mark.parametrize("address", ["/categories", "/categories/tensor"])
def test_it_takes_at_most_four_queries(address: str, slugs: dict[str, str], client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    assert len([q for q in queries if "dataversion" not in q["sql"]]) <= 4


def test_an_unknown_category_is_not_found(client: Client) -> None:
    assert client.get("/categories/nothing").status_code == 404
    assert client.get("/categories").status_code == 200


def test_what_is_private_does_not_show(slugs: dict[str, str], client: Client) -> None:
    hidden = factory.make_submission("Secret Model", visibility="private")
    factory.make_judged(hidden, Problem.objects.get(number=2), speedup=9.0)
    for address in ("/categories", "/categories/tensor", "/categories/tensor.json", "/"):
        text = client.get(address).content.decode()
        assert "Secret Model" not in text, address
        assert hidden.model.slug not in text, address
    assert client.get(f"/categories?models={hidden.model.slug}").status_code == 400
