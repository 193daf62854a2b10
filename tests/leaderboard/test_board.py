"""The leaderboard: thresholds, filters, ties, what is pinned, and what it weighs."""

from __future__ import annotations

import re
from typing import Any

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.metrics.board_numbers import MEASURED
from leaderboard.metrics.intervals import Interval
from leaderboard.metrics.ties import (
    is_surely_better,
    overlap,
    place_ranges,
    sign_test,
    tie_groups,
)
from leaderboard.models import (
    LanguageModel,
    LeaderboardRow,
    Problem,
    ProblemAggregate,
    Run,
    Submission,
)
from leaderboard.models.choices import CURRENT_JUDGE
from leaderboard.read_model.leaderboard_rows import columns_of
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]
COMPRESSED_BYTES = 60_000


@pytest.fixture
def rows() -> tuple[Run, Run]:
    """Two submissions at two problems: speedups 2.0 and 1.2, and 1.02, which holds 1."""
    one, two = factory.make_problem(), factory.make_problem(2, "gemm", "expert")
    first, second = factory.make_submission("Fast", k=2), factory.make_submission("Close")
    fast = factory.make_judged(first, one, speedup=2.0)
    factory.make_judged(first, two, speedup=1.2)
    factory.make_judged(first, one, Verdict.OUTPUT_MISMATCH)
    close = factory.make_judged(second, one, speedup=1.02)
    return fast, close


def board(client: Client, query: str = "") -> dict[str, dict[str, Any]]:
    found = client.get(f"/leaderboard.json{query}")
    assert found.status_code == 200, found.content
    return {row["model"]: row for row in found.json()["rows"]}


def test_the_threshold_changes_what_counts_as_fast(rows: object, client: Client) -> None:
    assert board(client)["Fast"]["fast1"] == pytest.approx((0.5 + 1) / 2)
    at = board(client, "?p=1.5")
    assert at["Fast"]["p"] == 1.5
    assert at["Fast"]["fast1"] == pytest.approx(0.5 / 2)
    assert at["Fast"]["fastk"] == pytest.approx(1 / 2)
    assert at["Close"]["fast1"] == 0.0
    assert at["Fast"]["pass1"] == board(client)["Fast"]["pass1"]
    assert board(client, "?p=0")["Fast"]["fast1"] == at["Fast"]["pass1"]
    assert "fast₁.₅@1" in client.get("/?p=1.5&columns=all").content.decode()


@pytest.mark.parametrize("p", ["x", "nan", "inf", "-1", "9", "1.01", "1e400"])
def test_a_threshold_between_steps_is_refused(p: str, rows: object, client: Client) -> None:
    response = client.get("/", {"p": p})
    assert response.status_code == 400
    assert "in steps of 0.05" in response.content.decode()


def test_a_claim_is_known_at_one_only(rows: object, client: Client) -> None:
    factory.make_publication()
    assert board(client)["Claimed Model"]["fast1"] == pytest.approx(22 / 87)
    assert board(client, "?p=1.5")["Claimed Model"]["fast1"] is None


def test_kernels_not_told_apart_do_not_count_and_are_pale(rows: object, client: Client) -> None:
    found = board(client)
    assert found["Close"]["fast1"] == 0.0
    assert found["Close"]["fast1_likely"] == 0.5
    assert found["Fast"]["fast1_likely"] == found["Fast"]["fast1"]
    page = client.get("/").content.decode()
    assert "50.0 % with 1 not distinguishable" in page
    assert page.count('class="pale"') == 1


@pytest.mark.parametrize(
    ("query", "models"),
    [
        ("?category=expert", {"Fast"}),
        ("?source=NVIDIA/nccl", {"Fast", "Close"}),
        ("?backend=pytorch", {"Fast", "Close"}),
        ("?backend=cuda", set()),
        ("?trust=verified", {"Fast"}),
        ("?harness=agentic", set()),
        ("?mechanism=tma", set()),
    ],
)
def test_filters_leave_what_they_say(
    query: str, models: set[str], rows: tuple[Run, Run], client: Client
) -> None:
    submission = rows[1].kernel.submission
    Submission.objects.filter(pk=submission.pk).update(trust="self-reported")
    assert set(board(client, query)) == models


def test_a_source_changes_the_denominator(rows: object, client: Client) -> None:
    other = Problem.objects.get(number=2)
    other.payload = {**other.payload, "source": "deepseek-ai/DeepEP"}
    other.save()
    factory.make_judged(Submission.objects.get(model__name="Fast"), other, speedup=3.0)
    found = board(client, "?source=deepseek-ai/DeepEP")
    assert {name: row["scored"] for name, row in found.items()} == {"Fast": 1}
    assert client.get("/?source=nobody").status_code == 400


def test_filters_on_kernels_leave_claims_out(rows: object, client: Client) -> None:
    factory.make_publication()
    assert "Claimed Model" in board(client)
    for query in ("?nccl=no", "?trust=verified", "?backend=pytorch", "?source=NVIDIA/nccl"):
        assert "Claimed Model" not in board(client, query), query


def test_baselines_come_first_and_claims_last_without_places(rows: object, client: Client) -> None:
    factory.make_publication()
    reference = factory.make_submission("PyTorch + NCCL", "human")
    factory.make_judged(reference, Problem.objects.get(number=1), speedup=1.0)
    LanguageModel.objects.filter(pk=reference.model_id).update(is_baseline=True)
    found = board(client)
    assert list(found) == ["PyTorch + NCCL", "Fast", "Close", "Claimed Model"]
    assert [row["place"] for row in found.values()] == [None, "1", "2", None]
    page = client.get("/").content.decode()
    assert page.index("Published, not run here") > page.index("Close")
    assert '<tr class="baseline">' in page
    assert "PyTorch + NCCL" in board(client, "?harness=zero-shot")
    assert list(board(client, "?harness=agentic")) == ["PyTorch + NCCL"]
    page = client.get("/?harness=agentic").content.decode()
    assert "No submission has been judged here under these filters yet." in page


@pytest.mark.parametrize("key", ["fast1", "speedup", "cost", "utilisation", "attempted", "k"])
def test_unknown_numbers_come_last_in_both_directions(
    key: str, rows: tuple[Run, Run], client: Client
) -> None:
    submission = rows[0].kernel.submission
    Submission.objects.filter(pk=submission.pk).update(cost_usd=12.5)
    for sort in (key, f"-{key}"):
        values = [row[key] for row in board(client, f"?sort={sort}").values()]
        known = [value for value in values if value is not None]
        assert values[: len(known)] == known
        assert known == sorted(known, reverse=sort == key)


def test_columns_nobody_has_a_number_for_are_not_drawn(
    rows: tuple[Run, Run], client: Client
) -> None:
    assert "Cost" not in client.get("/").content.decode()
    Submission.objects.filter(pk=rows[0].kernel.submission.pk).update(cost_usd=12.5)
    assert "12.50" in client.get("/?sort=cost").content.decode()


def test_every_filter_that_is_set_can_be_taken_away(rows: object, client: Client) -> None:
    page = client.get("/?p=1.5&category=expert&sort=pass1").content.decode()
    assert 'href="/?category=expert&amp;sort=pass1"' in page
    assert 'href="/?p=1.5&amp;sort=pass1"' in page
    assert "Only 1 submission has been judged in this setting under these filters." in page


def test_rows_are_bracketed_with_the_best_they_overlap() -> None:
    def span(low: float, high: float) -> Interval:
        return Interval(low=low, high=high)

    intervals = [span(0.6, 0.8), span(0.5, 0.7), span(0.45, 0.65), span(0.3, 0.5), None]
    # The fourth overlaps the third, but not the first, who leads the group.
    assert tie_groups(intervals, overlap) == [1, 1, 1, None, None]
    assert tie_groups([*intervals[:4], span(0.2, 0.4)], overlap) == [1, 1, 1, 2, 2]
    assert tie_groups([], overlap) == []


def test_a_sign_test_is_exact() -> None:
    assert sign_test(0, 0) == sign_test(3, 3) == 1.0
    assert sign_test(5, 0) == sign_test(0, 5) == 2 / 32
    assert sign_test(6, 0) == 2 / 64
    assert sign_test(8, 1) == 2 * (1 + 9) / 512


def test_rows_are_compared_on_the_problems_that_both_were_judged_on() -> None:
    worse = [0.0] * 6
    assert is_surely_better([1.0] * 6, worse)
    assert not is_surely_better([1.0] * 5 + [0.0], worse)
    assert not is_surely_better(worse, [1.0] * 6)
    # One of the six was not judged on the sixth problem, so five wins are left.
    assert not is_surely_better([1.0] * 5 + [None], worse)
    assert not is_surely_better([1.0] * 80, [None] * 80)
    assert is_surely_better([0.5] * 7, [0.25] * 6 + [0.5, 1.0])


def test_tied_rows_show_the_places_that_they_share() -> None:
    places = ["1", "2=", "2=", "4", "5", None]
    assert place_ranges(places, [1, 1, 1, None, 2, None]) == [*["1–3"] * 3, None, "5–5", None]
    assert place_ranges(["4", "2=", "2=", "1"], [2, 2, 2, None]) == [*["2–4"] * 3, None]


@pytest.mark.django_db
def test_a_board_ties_what_problems_do_not_tell_apart(client: Client) -> None:
    problems = [factory.make_problem(number, f"p{number}") for number in range(1, 8)]
    rows = {"Best": 7, "Near": 3, "Far": 1}
    for name, right in rows.items():
        submission = factory.make_submission(name)
        for at, problem in enumerate(problems):
            verdict = Verdict.OK if at < right else Verdict.TIMEOUT
            factory.make_judged(submission, problem, verdict, speedup=2.0)
    board = client.get("/leaderboard.json").json()["rows"]
    # Best wins 4 to 0 against Near, of which chance makes 1 in 8, and 6 to 0 against Far.
    assert {row["model"]: row["tie_group"] for row in board} == {"Best": 1, "Near": 1, "Far": None}
    page = client.get("/").text
    assert re.findall(r'<td class="place[^>]*>([^<]*)', page) == ["1–2", "1–2", "3"]
    said = "Statistically tied with Best: Near."
    assert said in page
    assert "sign test" in page


def test_ties_are_drawn_for_shares_in_either_order(rows: object, client: Client) -> None:
    for sort in ("fast1", "-fast1"):
        page = client.get(f"/?sort={sort}").content.decode()
        assert re.findall(r'<td class="place (tie[\w ]*)"', page) == ["tie top", "tie end"]
    assert 'class="place tie' not in client.get("/?sort=speedup").content.decode()


def test_two_rows_can_be_ticked_to_compare(rows: tuple[Run, Run], client: Client) -> None:
    page = client.get("/?profile=hardened").content.decode()
    ticks = re.findall(r'name="with" value="(\d+)" form="compare"', page)
    assert {int(tick) for tick in ticks} == {run.kernel.submission_id for run in rows}
    assert '<input type="hidden" name="profile" value="hardened">' in page


def attempt(number: int, row: int) -> dict[str, Any]:
    """Every second is right, at a speedup of its own."""
    speedup = 0.5 + (37 * row + 11 * number) % 97 / 40 if (row + number) % 2 else None
    return {
        "verdict": "ok" if speedup else "output_mismatch",
        **{"cause": None, "speedup": speedup, "low": speedup and speedup * 0.97},
        **dict.fromkeys(MEASURED, speedup and speedup / 7),
        "backend": ("cuda", "triton", "pytorch")[number % 3],
        **{"mechanisms": ["copy_engine"], "nccl": False},
        "kernel": "0" * 64,
        "run": "00000000-0000-0000-0000-000000000000",
        "output_tokens": 1000 * number + row,
        "usd": row / 100,
    }


def fill(models: int, problems: int) -> None:
    """Leaderboard rows as they are stored, without the runs that they sum up."""
    numbers = range(1, problems + 1)
    for number in numbers:
        factory.make_problem(number, f"problem{number}", f"kind{number % 4}")
    factory.make_run(
        factory.make_kernel(factory.make_submission("First"), Problem.objects.all()[0])
    )
    LanguageModel.objects.bulk_create(
        LanguageModel(slug=f"model-{n}", name=f"Model {n} of somebody", vendor=f"Vendor {n % 20}")
        for n in range(models)
    )
    named = LanguageModel.objects.exclude(name="First")
    made = Submission.objects.bulk_create(
        Submission(
            model=model,
            harness="zero-shot",
            k=3,
            owner=factory.make_user(),
            visibility="public",
            request_digest=str(n),
            cost_usd=n / 7,
        )
        for n, model in enumerate(named)
    )
    setting = {name: factory.SETTING[name] for name in ("world_size", "size", "dtype", "profile")}
    setting |= {"hardware_id": "cpu", "judge_version": CURRENT_JUDGE}
    LeaderboardRow.objects.bulk_create(
        LeaderboardRow(
            submission=submission,
            **setting,
            **columns_of([(n, f"kind{n % 4}", [attempt(n, row)] * 3) for n in numbers], 3),
        )
        for row, submission in enumerate(made)
    )
    counts = dict.fromkeys(("solved", "made", "correct", "faster", "baseline_runs"), 0)
    ProblemAggregate.objects.create(problem_id=1, submissions=models, modes={}, **setting, **counts)


def test_a_board_of_200_models_is_light_and_asks_little(client: Client) -> None:
    fill(models=200, problems=12)
    with CaptureQueriesContext(connection) as queries:
        response = client.get("/", headers={"Accept-Encoding": "gzip"})
    own = [q["sql"] for q in queries if "dataversion" not in q["sql"]]
    assert len(own) <= 6, own
    assert len(response.content) <= COMPRESSED_BYTES
    pages = [client.get(f"/?sort=pass1&page={number}").content.decode() for number in (1, 2)]
    names = [re.findall(r'class="first name" id="(s\d+)"', page) for page in pages]
    assert [len(found) for found in names] == [100, 100]
    assert len({*names[0], *names[1]}) == 200
    assert '<a href="/?sort=pass1&amp;page=2" rel="next">Next</a>' in pages[0]
    assert "Showing 101 to 200 of 200 submissions judged here" in pages[1]
    # A bracket that goes on from the page before has no beginning here.
    assert "place tie top" in pages[0]
    assert pages[1].partition('<td class="place')[2].startswith(' tie">')
    assert len(client.get("/leaderboard.json?page=2").json()["rows"]) == 200
    assert client.get("/?page=3").status_code == 404


@pytest.mark.parametrize(
    ("name", "traces"), [("fast-p", 3), ("pass-k", 6), ("spreads", 3), ("utilisations", 3)]
)
def test_every_figure_has_its_twin_and_follows_the_filters(
    name: str, traces: int, client: Client
) -> None:
    fill(models=3, problems=8)
    assert f"/figures/{name}.json?p=1.5" in client.get("/?p=1.5").content.decode()
    spec = client.get(f"/figures/{name}.json?p=1.5").json()
    assert len(go.Figure(spec).data) == traces
    table = client.get(f"/figures/{name}.csv?p=1.5").content.decode().splitlines()
    assert len(table) == 1 + (4 if name == "utilisations" else traces)
    assert not client.get(f"/figures/{name}.json?harness=human").json()["data"]


def test_it_says_where_nothing_was_judged(client: Client) -> None:
    factory.make_publication()
    assert "No submission has been judged here yet." in client.get("/").content.decode()


def test_of_sizes_that_are_used_as_much_the_standard_one_is_shown(client: Client) -> None:
    submission, problem = factory.make_submission("A"), factory.make_problem()
    kernel = factory.make_kernel(submission, problem)
    for size in ("large", "tiny", "standard"):
        run = factory.make_run(kernel, size=size)
        factory.finish(run, factory.make_report(run))
    assert client.get("/leaderboard.json").json()["setting"]["size"] == "standard"
    other = factory.make_run(
        factory.make_kernel(factory.make_submission("B"), problem), size="tiny"
    )
    factory.finish(other, factory.make_report(other))
    assert client.get("/leaderboard.json").json()["setting"]["size"] == "tiny"
