"""Figures of problems are valid Plotly, carry their numbers and escape their names."""

from __future__ import annotations

import json
import math

import plotly.graph_objects as go
import pytest
from django.test import Client

from leaderboard.figures.charts import drawing, speedups
from leaderboard.figures.charts import problems as charts
from leaderboard.figures.charts.drawing import Spec
from leaderboard.figures.charts.problems import Axes, Limit, ProblemSpread, Reach
from leaderboard.figures.charts.speedups import SpeedupLine
from leaderboard.models import Problem
from leaderboard.problem_pages.problem_figures import Scale, speedup_lines
from tests.leaderboard import factory

HOSTILE = '<b onmouseover="alert(1)">x</b>'
AXES = Axes(x="bytes", y="GB/s", unit="GB/s")


def every_figure(name: str) -> list[Spec]:
    reach = Reach(name=name, x=1e6, baseline=10.0, best=20.0)
    unsolved = Reach(name=name, x=1e3, baseline=1.0, best=None)
    limits = [Limit(name=name, level=450.0, slope=0), Limit(name="late", level=1e-3, slope=1)]
    line = SpeedupLine(name=name, points=((1.0, 2.0), (100.0, 0.5)))
    return [
        charts.roofline([reach, unsolved], limits, AXES),
        charts.roofline([], [], AXES),
        charts.spreads([ProblemSpread(name=name, speedups=(2.0, 0.5))]),
        speedups.speedup_lines([line], "size", [(1.0, "1 B")], [(10.0, "10 B")]),
    ]


@pytest.mark.parametrize("number", range(4))
def test_a_figure_is_valid_plotly_and_plain_json(number: int) -> None:
    spec = every_figure("a problem")[number]
    go.Figure(spec)
    assert json.loads(json.dumps(spec)) == spec


def test_names_reach_a_figure_escaped() -> None:
    for spec in every_figure(HOSTILE):
        assert "<b " not in json.dumps(spec)


def test_a_roofline_draws_each_limit_as_far_as_it_is_the_lowest() -> None:
    spec = every_figure("p")[0]
    flat, slope = spec["data"][0], spec["data"][1]
    # They cross at 450 / 1e-3 bytes.
    assert min(flat["x"]) >= 450_000 * 0.7
    assert max(slope["x"]) <= 450_000 * 1.4
    assert set(flat["y"]) == {450.0}


def test_a_roofline_joins_reference_and_best_kernel_of_what_is_solved() -> None:
    joined, reference, best = every_figure("p")[0]["data"][2:]
    assert joined["x"] == [1e6, 1e6, None]
    assert joined["y"] == [10.0, 20.0, None]
    assert (reference["y"], best["y"]) == ([10.0, 1.0], [20.0])


def test_rates_have_no_prefix_before_their_unit_and_exponents_are_plain_text() -> None:
    """Plotly would set raised digits in a style of their own, which the policy forbids."""
    reaches = [Reach(name="p", x=1.0, baseline=2e-5, best=None)]
    limits = [Limit(name="links", level=450.0, slope=0)]
    rates = charts.roofline(reaches, limits, AXES)["layout"]["yaxis"]
    assert "exponentformat" not in rates
    texts = ["10⁻⁵", "10⁻⁴", "10⁻³", "0.01", "0.1", "1", "10", "100", "1000"]
    assert rates["ticktext"] == texts
    assert rates["tickvals"] == pytest.approx([10.0**n for n in range(-5, 4)])


def test_one_line_or_one_mark_has_a_name() -> None:
    for spec in (
        *every_figure("p")[2:],
        charts.spreads([ProblemSpread(name="p", speedups=(2.0,))]),
    ):
        assert spec["layout"]["showlegend"] is True


def test_the_best_of_a_spread_is_marked_and_drawn_once() -> None:
    others, best = charts.spreads([ProblemSpread(name="p", speedups=(2.0, 0.5, 1.0))])["data"]
    assert (others["x"], best["x"]) == ([0.5, 1.0], [2.0])


def test_crossings_are_found_between_logarithms() -> None:
    assert speedups.crossings([(1.0, 2.0), (100.0, 0.5)]) == [pytest.approx(10.0)]
    assert speedups.crossings([(1.0, 2.0), (100.0, 1.5)]) == []
    two = speedups.crossings([(1.0, 0.5), (4.0, 2.0), (16.0, 0.5)])
    assert [round(math.log2(x)) for x in two] == [1, 3]


def test_where_the_best_kernel_crosses_nccl_is_drawn() -> None:
    line = SpeedupLine(name="A", points=((1.0, 2.0), (10_000.0, 0.5)))
    layout = speedups.speedup_lines([line], "size", [(1.0, "1 B")], [(100.0, "100 B")])["layout"]
    (mark,) = layout["annotations"]
    assert (mark["x"], mark["text"]) == (2.0, "as fast as NCCL at 100 B")
    assert (layout["shapes"][1]["x0"], layout["shapes"][1]["x1"]) == (100.0, 100.0)


def test_the_best_of_all_submissions_is_a_line_where_there_are_several() -> None:
    scale = Scale(at={"tiny": 8.0, "standard": 800.0}, title="", text=str, unit="")
    one = {"A": [("standard", 0.5), ("tiny", 2.0)], "elsewhere": [("large", 3.0), ("tiny", 1.5)]}
    (line,) = speedup_lines(one, scale)
    assert (line.name, line.points, line.best) == ("A", ((8.0, 2.0), (800.0, 0.5)), False)
    *lines, best = speedup_lines({**one, "B": [("tiny", 1.0), ("standard", 1.5)]}, scale)
    assert [line.name for line in lines] == ["A", "B"]
    assert (best.points, best.best) == (((8.0, 2.0), (800.0, 1.5)), True)
    *lines, best = speedup_lines({**one, "at one place": [("tiny", 3.0)]}, scale)
    assert [line.name for line in lines] == ["A"]
    assert best.points == ((8.0, 3.0), (800.0, 0.5))
    apart = {"B": [("tiny", 3.0)], "C": [("standard", 0.5)]}
    assert [line.points for line in speedup_lines(apart, scale)] == [((8.0, 3.0), (800.0, 0.5))]


@pytest.mark.parametrize(
    ("speedups", "marked", "low", "high"),
    [
        ((1.24, 1.46), ["1", "1.1", "1.25"], 0.9, 1.6),
        ((0.3, 1.5), ["0.3", "0.5", "0.7", "1", "1.5"], 0.2, 1.8),
        ((0.02, 40.0), ["0.1", "10"], 0.01, 70.0),
        ((), ["1"], 0.9, 1.1),
    ],
)
def test_a_speedup_axis_has_marks_where_the_speedups_lie(
    speedups: tuple[float, ...], marked: list[str], low: float, high: float
) -> None:
    axis = drawing.speedup_axis(speedups)
    start, end = (10**edge for edge in axis["range"])
    assert low < start < min(1.0, *speedups, 1.0) <= max(1.0, *speedups, 1.0) < end < high
    pairs = zip(axis["tickvals"], axis["ticktext"], strict=True)
    assert set(marked) <= {text for mark, text in pairs if start < mark < end}


@pytest.mark.django_db
def test_a_site_without_kernels_draws_the_references(problem: Problem, client: Client) -> None:
    rows = client.get("/figures/roofline-links.csv").content.decode().splitlines()
    # 2048 bytes in 31.9 µs.
    assert rows[1].split(",")[2].startswith("0.064")
    page = client.get("/problems").content.decode()
    assert "roofline-links" not in page
    assert "drawn from three problems on; 1 of these has a time" in page
    for number in (2, 3):
        other = factory.make_problem(number, f"p{number}")
        other.payload = problem.payload
        other.save()
    assert "roofline-links" in client.get("/problems").content.decode()
