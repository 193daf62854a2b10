"""What is judged with all ranks on one device is checked: right or wrong, never timed or ranked by
speed, and never mixed with what is timed."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.metrics.verdicts import TRUST_MEANINGS
from leaderboard.models import (
    LeaderboardRow,
    Problem,
    ProblemAggregate,
    Run,
    Submission,
    Summary,
)
from leaderboard.publishing.feed import records
from leaderboard.read_model import summary, summary_check
from leaderboard.read_model.boards import judged, known_settings
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]
SHARED: dict[str, Any] = {"placement": "shared"}
ASKED = "?placement=shared"


@pytest.fixture
def checked() -> Submission:
    """Right at problem 1 twice, a race at problem 2, all on one device."""
    found = factory.make_submission("Checked", k=2)
    first, second = factory.make_problem(), factory.make_problem(2, "broadcast")
    factory.make_judged(found, first, **SHARED)
    factory.make_judged(found, first, **SHARED)
    run = factory.make_run(factory.make_kernel(found, second), **SHARED)
    wrong = factory.make_report(
        run, Verdict.OUTPUT_MISMATCH, cause="race_between_calls", evidence="wrong of 20: 19"
    )
    factory.finish(run, wrong)
    return found


def test_a_right_run_is_stored_without_times(problem: Problem) -> None:
    run = factory.make_judged(factory.make_submission(), problem, **SHARED)
    assert (run.verdict, run.placement, run.is_timed, run.speedup) == ("ok", "shared", False, None)
    full = factory.make_judged(factory.make_submission(), problem)
    assert (full.placement, full.is_timed) == ("full", True)


@pytest.mark.parametrize("placement", ["full", "shared"])
def test_times_belong_to_the_placement_that_has_them(placement: str, problem: Problem) -> None:
    """The database itself refuses a right run without times, and times of shared devices."""
    kernel = factory.make_kernel(factory.make_submission(), problem)
    run = factory.make_run(kernel, placement=placement)
    other = factory.make_run(kernel, placement=({"full", "shared"} - {placement}).pop())
    with pytest.raises(IntegrityError, match="run_ok_iff_timed"), transaction.atomic():
        factory.finish(run, factory.make_report(other))


def test_boards_never_mix_what_is_checked_with_what_is_timed(checked: Submission) -> None:
    timed = factory.make_submission("Timed")
    factory.make_judged(timed, Problem.objects.get(number=1), speedup=2.0)
    full, shared = known_settings()  # what is timed first
    assert (full.placement, shared.placement) == ("full", "shared")
    assert [entry.submission for entry in judged(full, 2)] == [timed.pk]
    (entry,) = judged(shared, 2)
    score = entry.score
    assert (entry.submission, entry.trust) == (checked.pk, "checked")
    assert (score.attempted, score.correct, score.pass_at_1, score.pass_at_k) == (2, 1, 0.5, 0.5)
    assert (score.fast_at_1, score.fast_at_k, score.geometric_mean) == (None, None, None)
    assert score.likely_fast_at_1 is None
    assert dict(entry.modes) == {"output mismatch": 1, "correct": 2}
    assert str(shared).endswith("ranks on one device")
    assert "device" not in str(full)


def test_a_submission_is_verified_where_it_was_timed_and_checked_where_it_was_not(
    checked: Submission, client: Client
) -> None:
    factory.make_judged(checked, Problem.objects.get(number=2))
    page = f"/submissions/{checked.pk}"
    assert '<span class="chip checked">checked</span>' in client.get(page + ASKED).text
    assert (
        '<span class="chip verified">verified</span>' in client.get(f"{page}?placement=full").text
    )
    board = client.get(f"/{ASKED}&trust=verified").text
    assert '<span class="chip checked">checked</span>' in board
    assert '<option value="verified" selected>Judged here</option>' in board
    for word in ("verified", "checked"):
        assert TRUST_MEANINGS[word].startswith("Judged ")


def test_rows_are_the_same_made_at_once_or_one_by_one(checked: Submission) -> None:
    def stored() -> list[Any]:
        kinds = (Summary, LeaderboardRow, ProblemAggregate)
        skip = ("id",)
        return [
            [
                {k: v for k, v in row.items() if k not in skip}
                for row in kind._default_manager.values()
            ]
            for kind in kinds
        ]

    before = stored()
    row = Summary.objects.get(problem=1)
    assert (row.made, row.correct, row.best_speedup, row.placement) == (2, 2, None, "shared")
    assert row.best_run is not None
    aggregate = ProblemAggregate.objects.get(problem=1)
    assert (aggregate.solved, aggregate.correct, aggregate.baseline_runs) == (1, 2, 0)
    assert summary_check.differences() == []
    summary.rebuild()
    assert stored() == before


def test_the_board_says_checked_and_goes_by_pass_at_1(checked: Submission, client: Client) -> None:
    better = factory.make_submission("Better")
    for number in (1, 2):
        factory.make_judged(better, Problem.objects.get(number=number), **SHARED)
    factory.make_publication("Claimed")
    page = client.get(f"/{ASKED}").text
    assert page.index("Better") < page.index(">Checked<")
    assert "checked, not timed" in page
    assert page.count(">not timed</td>") >= 2
    data = client.get(f"/leaderboard.json{ASKED}").json()
    assert data["setting"]["placement"] == "shared"
    rows = [row for row in data["rows"] if not row["claimed"]]
    assert [(row["place"], row["trust"], row["fast1"]) for row in rows] == [
        ("1", "checked", None),
        ("2", "checked", None),
    ]
    assert client.get(f"/api/v1/leaderboard{ASKED}").json()["rows"] == data["rows"]


def test_every_page_takes_the_placement(checked: Submission, client: Client) -> None:
    """And none draws a figure of speeds."""
    factory.make_judged(factory.make_submission("Timed"), Problem.objects.get(number=1))
    slug = checked.model.slug
    for page in (
        *("/", "/matrix", "/problems", "/problems/1-allreduce", "/categories", "/compare"),
        *(f"/submissions/{checked.pk}", f"/models/{slug}", "/categories/tensor", "/status"),
    ):
        with CaptureQueriesContext(connection) as asked:
            answer = client.get(f"{page}{ASKED}" if page != "/status" else page)
        assert answer.status_code == 200, page
        assert len(asked) <= 6, page
    for name in ("speedups", "fast-p", "spreads"):
        text = client.get(f"/submissions/{checked.pk}{ASKED}").text + client.get(f"/{ASKED}").text
        assert f"/figures/{name}?" not in text


def test_the_matrix_has_a_sign_for_it(checked: Submission, client: Client) -> None:
    text = client.get(f"/matrix{ASKED}").text
    assert 'title="1: right, not timed">✓</a>' in text
    assert "right and faster" not in text


def test_the_page_of_a_submission_has_no_empty_speeds(checked: Submission, client: Client) -> None:
    text = client.get(f"/submissions/{checked.pk}").text
    assert '<dt>Speed</dt><dd class="big">not timed</dd>' in text
    assert "Utilisation" not in text
    assert ">checked 2</a>" in text
    kernels = client.get(f"/submissions/{checked.pk}.json").json()["kernels"]
    assert {one["placement"] for one in kernels} == {"shared"}
    table = csv.DictReader(io.StringIO(client.get(f"/submissions/{checked.pk}.csv").text))
    assert {row["placement"] for row in table} == {"shared"}


def test_the_page_of_a_run_says_what_it_establishes(checked: Submission, client: Client) -> None:
    right, wrong = (
        Run.objects.filter(verdict=verdict).first() for verdict in ("ok", "output_mismatch")
    )
    assert right
    assert wrong
    text = client.get(f"/runs/{right.pk}").text
    assert "checked on one device</span>: right, not timed" in text
    assert "/methodology#placement" in text
    assert '<h2 id="speed">' not in text
    assert "Timed batches" not in text
    assert "--placement shared" in text
    text = client.get(f"/runs/{wrong.pk}").text
    assert "race between calls</bdi>. Right wherever a call begins" in text
    assert "wrong of 20: 19" in text
    assert 'id="placement"' in client.get("/methodology").text


def test_the_page_of_a_kernel_lists_it_among_others(checked: Submission, client: Client) -> None:
    run = Run.objects.filter(verdict="ok").first()
    assert run
    full = factory.make_run(run.kernel)
    factory.finish(full, factory.make_report(full))
    text = client.get(f"/kernels/{run.kernel.source_id}").text
    assert "2 ranks on one device" in text
    assert "not timed" in text
    rows = csv.DictReader(io.StringIO(client.get(f"/kernels/{run.kernel.source_id}.csv").text))
    assert {row["placement"]: row["speedup"] for row in rows} == {"full": "1.3", "shared": ""}


def test_the_feed_tells_of_no_record_of_speed(checked: Submission) -> None:
    assert records() == []


def test_without_times_no_kernel_is_the_best_of_a_category(
    checked: Submission, client: Client
) -> None:
    address = f"/categories/{Problem.objects.get(number=1).category}"
    page = client.get(f"{address}{ASKED}").text
    assert "Best by" not in page
    assert "not timed, and so without a best one" in page
    first, _ = client.get(f"{address}.json{ASKED}").json()["problems"]
    assert (first["solved"], first["best_model"], first["best_run"]) == (1, None, None)


def test_without_times_a_models_problems_are_solved_or_not(
    checked: Submission, client: Client
) -> None:
    for number in range(3, 12):
        factory.make_judged(checked, factory.make_problem(number, f"more{number}"), **SHARED)
    page = client.get(f"/models/{checked.model.slug}").text
    solved, unsolved = page.index('id="best"'), page.index('id="worst"')
    assert "Best problems" not in page
    assert "Worst problems" not in page
    assert "The first 8 by number of 10" in page[solved:unsolved]
    every = re.search(r'by number of 10, <a href="([^"]*)"', page)
    assert every
    assert f"#s{checked.pk}" in client.get(every[1].replace("&amp;", "&")).headers["Location"]
    assert "2. Problem broadcast" in page[unsolved:]
    assert "not timed</td>" not in page[solved : page.index('id="categories"')]
