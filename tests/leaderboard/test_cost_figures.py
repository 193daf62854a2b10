"""What submissions took against what they reached: the line through the best, and few points."""

from __future__ import annotations

import pytest
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.figures.charts.costs import Point, against, front
from leaderboard.models import Making, Problem
from leaderboard.read_model import summary
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db


def point(took: float, reached: float, name: str = "a") -> Point:
    return Point(model=name, name=name, took=took, reached=reached)


def submit(name: str, problem: Problem, usd: float | None, speedup: float) -> None:
    """A judged kernel of a model, made for that much."""
    run = factory.make_judged(factory.make_submission(name), problem, speedup=speedup)
    tokens = None if usd is None else int(1000 * usd)
    Making.objects.create(kernel=run.kernel, cost_usd=usd, output_tokens=tokens)
    summary.update(run)


def test_the_line_joins_what_nobody_beats_for_as_little() -> None:
    points = [point(5, 50), point(1, 10), point(2, 10), point(3, 40), point(3, 30), point(9, 45)]
    assert front(points) == [point(1, 10), point(3, 40), point(5, 50)]
    line, marks = against(points, "x", "y")["data"]
    assert (line["x"], line["y"]) == ([1, 3, 5], [10, 40, 50])
    assert [bool(text) for text in marks["text"]] == [True, True, False, True, False, False]


@pytest.mark.parametrize(
    ("values", "kind"), [((0, 50), None), ((1, 5), None), ((1, 50), "log"), ((), None)]
)
def test_an_axis_is_logarithmic_where_costs_lie_far_apart(
    values: tuple[float, ...], kind: str | None
) -> None:
    spec = against([point(value, 1) for value in values], "x", "y")
    assert spec["layout"]["xaxis"].get("type") == kind


def test_names_of_submitters_are_escaped() -> None:
    spec = against([point(1, 1, "<b>\u202e")], "x", "y")
    assert spec["data"][1]["text"] == ["&lt;b&gt;[U+202E]"]


def test_figures_are_drawn_from_three_points_on_and_said_in_words_before(
    problem: Problem, client: Client
) -> None:
    for number in range(2):
        submit(f"Model {number}", problem, 1.0 + number, 1.5)
    submit("Silent", problem, None, 1.5)
    page = client.get("/").text
    assert "is drawn from 3 submissions on; here 2 submissions told it" in page
    assert "/figures/cost-fast" not in page
    assert client.get("/figures/cost-fast.json").json()["data"][1]["x"] == []
    submit("Model 2", problem, 0.5, 0.5)
    page = client.get("/").text
    assert "told it" not in page
    for name, took, reached in (
        ("cost-fast", [1.0, 2.0, 0.5], [100, 100, 0]),
        ("tokens-solved", [1000, 2000, 500], [1, 1, 1]),
    ):
        assert f"/figures/{name}" in page
        _, marks = client.get(f"/figures/{name}.json").json()["data"]
        assert (marks["x"], marks["y"]) == (took, reached)
        assert "Model 2" in client.get(f"/figures/{name}").text
        assert client.get(f"/figures/{name}.csv").text.count("\n") == 4


def test_a_board_is_sorted_by_what_a_solved_problem_took_the_least_first(
    problem: Problem, client: Client
) -> None:
    for name, usd in (("Dear", 3.0), ("Cheap", 1.0), ("Silent", None)):
        submit(name, problem, usd, 1.5)
    rows = client.get("/leaderboard.json?sort=solved_usd").json()["rows"]
    assert [(row["model"], row["place"]) for row in rows] == [
        ("Cheap", "1"),
        ("Dear", "2"),
        ("Silent", None),
    ]
    turned = client.get("/leaderboard.json?sort=-solved_usd").json()["rows"]
    assert [row["model"] for row in turned] == ["Dear", "Cheap", "Silent"]


def test_what_was_tried_in_vain_is_paid_too(problem: Problem, client: Client) -> None:
    other = factory.make_problem(2, "allgather")
    own = factory.make_submission()
    for of, verdict in ((problem, Verdict.OK), (other, Verdict.OUTPUT_MISMATCH)):
        run = factory.make_judged(own, of, verdict)
        Making.objects.create(kernel=run.kernel, cost_usd=2.0)
        summary.update(run)
    (row,) = client.get("/leaderboard.json").json()["rows"]
    assert (row["solved_usd"], row["solved_tokens"]) == (4.0, None)
    (row,) = client.get("/leaderboard.json?category=tensor&backend=pytorch").json()["rows"]
    assert row["solved_usd"] == 4.0
