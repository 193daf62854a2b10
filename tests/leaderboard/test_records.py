"""How the best speedup at a problem grew."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client

from leaderboard.models import Problem
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]


def test_records_over_time_lead_to_their_runs(problem: Problem, client: Client) -> None:
    page = f"/problems/{problem.number}-{problem.slug}"
    submission = factory.make_submission("Model One")
    runs = [factory.make_judged(submission, problem, speedup=s) for s in (1.2, 1.1)]
    assert "is drawn from 3 correct kernels on; here 2 were timed." in client.get(page).text
    runs.append(factory.make_judged(factory.make_submission("Model Two"), problem, speedup=1.5))
    hidden = factory.make_submission("Hidden", visibility="private")
    factory.make_judged(hidden, problem, speedup=9.0)
    address = f"problem={problem.number}"
    assert f'"/figures/best-over-time.json?{address}"' in client.get(page).text
    every, best = client.get(f"/figures/best-over-time.json?{address}").json()["data"]
    assert every["y"] == [1.2, 1.1, 1.5]
    assert best["y"] == [1.2, 1.5]
    assert best["customdata"] == [f"/runs/{runs[n].pk}" for n in (0, 2)]
    told = client.get(f"/figures/best-over-time.csv?{address}").content.decode()
    assert [row[3] for row in csv.reader(io.StringIO(told))][1:] == ["yes", "no", "yes"]


def test_a_record_says_that_its_source_is_withheld(problem: Problem, client: Client) -> None:
    for name, withholds in (("Open", False), ("Closed", True)):
        submission = factory.make_submission(name, withholds_source=withholds)
        factory.make_judged(submission, problem, speedup=1.5)
    told = client.get(f"/figures/best-over-time.csv?problem={problem.number}").content.decode()
    named = [row[0] for row in csv.reader(io.StringIO(told))][1:]
    assert ["source withheld" in name for name in named] == [False, True]
