"""What the reference took beside kernels, and what it took alone."""

from __future__ import annotations

import csv
import dataclasses
from typing import Any

import pytest
from django.test import Client

from leaderboard.models import Hardware, Problem, ProblemAggregate, Submission
from leaderboard.models.choices import CURRENT_JUDGE
from leaderboard.read_model import summary, summary_check
from leaderboard.read_model.problem_results import totals_by_setting
from tests.leaderboard import factory
from tests.leaderboard.timings import make_timing

pytestmark = [pytest.mark.django_db, pytest.mark.server]

ON_GPUS = {"device": "cuda", "dtype": "bfloat16", "world_size": 4, "size": "standard"}


def timed(submission: Submission, problem: Problem, baseline_us: float, **told: Any) -> None:
    """A kernel of 50 µs beside a reference that took this long."""
    Hardware.objects.get_or_create(
        slug="h200x4", defaults={"title": "4 x NVIDIA H200", "device": "cuda", "max_world_size": 4}
    )
    kernel = factory.make_kernel(submission, problem, source=f"{submission.pk}")
    run = factory.make_run(kernel, hardware_id="h200x4", **ON_GPUS)
    speedup = baseline_us / 50.0
    timing = dataclasses.replace(make_timing(speedup), kernel_us=50.0)
    timing = dataclasses.replace(timing, baseline_us=baseline_us)
    factory.finish(run, factory.make_report(run, timing=timing, **told))


@pytest.fixture
def judged(problem: Problem) -> Problem:
    """Three kernels of models and the reference itself, on the GPUs where that was measured alone,
    and one on a processor."""
    reference = factory.make_submission("PyTorch + NCCL")
    reference.model.is_baseline = True
    reference.model.save()
    timed(reference, problem, 90.0)
    for name, baseline_us in (("A", 100.0), ("B", 110.126), ("C", 150.0)):
        timed(factory.make_submission(name), problem, baseline_us)
    timed(factory.make_submission("Secret", visibility="private"), problem, 900.0)
    factory.make_judged(factory.make_submission("A"), problem)
    return problem


def test_the_median_beside_kernels_is_kept_for_every_setting(judged: Problem) -> None:
    (gpus,) = [one for one in totals_by_setting(judged) if one.hardware_id == "h200x4"]
    assert gpus.baseline_runs == 4
    found = [gpus.baseline_low_us, gpus.baseline_us, gpus.baseline_high_us]
    # The quartiles of 90, 100, 110.126 and 150.
    assert found == pytest.approx([97.5, 105.063, 120.0945])
    assert summary_check.differences() == []
    kept = list(ProblemAggregate.objects.order_by("hardware").values())
    summary.rebuild()
    made = list(ProblemAggregate.objects.order_by("hardware").values())
    assert [row | {"id": 0} for row in made] == [row | {"id": 0} for row in kept]


def test_the_page_shows_the_judges_baseline_first(judged: Problem, client: Client) -> None:
    page = client.get(f"{judged.get_absolute_url()}?hardware=h200x4").content.decode()
    assert '<a href="#baseline">105 µs</a>' in page
    assert "median beside 4 kernels" in page
    part = page[page.index('<h2 id="baseline"') :]
    order = ['aria-current="true"', "h200x4, standard", "105.1", "cpu, tiny", "Alone", "31.9"]
    places = [part.index(text) for text in order]
    assert places == sorted(places)
    # Two lines that never break, and numbers still fit beside them on a phone.
    head = '<th scope="row" class="first tight">h200x4, standard<br><small class="quiet">'
    assert f"{head}bfloat16, hardened</small></th><td>{CURRENT_JUDGE}</td>" in part
    floors = page[page.index('id="costs"') : page.index('<h2 id="baseline"')]
    assert "105 µs" in floors
    assert "31.9" not in floors


def test_floors_stand_beside_times_of_the_judge_that_was_chosen(
    judged: Problem, client: Client
) -> None:
    timed(factory.make_submission("D"), judged, 444.0, judge_version="1")
    for judge, shown, other in ((CURRENT_JUDGE, "105 µs", "444 µs"), ("1", "444 µs", "105 µs")):
        page = client.get(f"{judged.get_absolute_url()}?hardware=h200x4&judge={judge}").text
        floors = page[page.index('id="costs"') : page.index('<h2 id="baseline"')]
        assert shown in floors
        assert other not in floors


def test_where_nothing_was_judged_a_floor_has_the_time_alone_and_says_so(
    problem: Problem, client: Client
) -> None:
    page = client.get(problem.get_absolute_url()).content.decode()
    assert "31.9 µs" in page[page.index('id="costs"') : page.index('<h2 id="baseline"')]
    assert ", by events</small>" in page
    assert "no speedup is against them" in page
    assert 'id="alone"' not in page


def test_csv_json_and_api_keep_both_apart(judged: Problem, client: Client) -> None:
    address = f"{judged.get_absolute_url()}.csv?table=baseline&hardware=h200x4"
    rows = list(csv.DictReader(client.get(address).text.splitlines()))
    told = [(row["timed_by"], row["hardware"], row["runs"], row["median_us"]) for row in rows]
    assert told == [
        ("judge", "h200x4", "4", "105.063"),
        ("judge", "cpu", "1", "100.0"),
        ("alone", "h200x4", "", "31.9"),
    ]
    for found in (
        client.get(f"{judged.get_absolute_url()}.json?hardware=h200x4").json()["judged_baselines"],
        client.get("/api/v1/problems/1").json()["judged_baselines"],
    ):
        (gpus,) = [one for one in found if one["hardware_id"] == "h200x4"]
        assert (gpus["runs"], gpus["world_size"], gpus["profile"]) == (4, 4, "hardened")
        assert gpus["median_us"] == pytest.approx(105.063)


def test_rooflines_never_mix_them(judged: Problem, client: Client) -> None:
    factory.make_problem(2, "gemm")
    table = client.get("/figures/roofline-links.csv?hardware=h200x4").text
    assert "1. Problem allreduce" in table
    assert "gemm" not in table
