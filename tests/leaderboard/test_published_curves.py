"""Speedups over size that a publication shows of single problems."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.leaderboard import factory

pytestmark = pytest.mark.django_db


def test_a_problem_shows_the_curve_that_was_published_of_it(client: Client) -> None:
    problem, other = factory.make_problem(82, "topk"), factory.make_problem(1)
    told = factory.make_publication()
    curve = {"model": "Claimed Model", "axis": "length", "setting": "4 ranks"}
    told.payload["net_new_kernels_read_off_plots"] = [
        {"problem": 82, **curve, "x": [1, 2, 4], "speedup": [1.3, 1.1, 0.7]},
        {"problem": 1, **curve, "x": [1, 2], "speedup": [1.3, 1.1]},
    ]
    told.save()
    page = client.get(f"/problems/82-{problem.slug}").content.decode()
    assert "read off the plot of its authors. Claimed Model: 4 ranks." in page
    (trace,) = client.get("/figures/published-speedups.json?problem=82").json()["data"]
    assert (trace["x"], trace["y"]) == ([1, 2, 4], [1.3, 1.1, 0.7])
    assert trace["line"]["dash"] == "dot"
    # Of two points no line is drawn, and of an unknown number there is no figure.
    assert "published-speedups" not in client.get(f"/problems/1-{other.slug}").content.decode()
    for number in ("1", "x", "99", ""):
        assert client.get(f"/figures/published-speedups.json?problem={number}").status_code == 404
