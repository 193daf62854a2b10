"""Submissions and kernels side by side: what is said of them is true and fair."""

from __future__ import annotations

import csv
import io
import math

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.models import Run, Submission, Visibility
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair() -> tuple[Submission, Submission]:
    """Four problems: both right and apart, both right and alike, only the first, neither."""
    problems = [factory.make_problem(n, f"problem-{n}", "tensor") for n in (1, 2, 3)]
    problems.append(factory.make_problem(4, "problem-4", "expert"))
    first, second = factory.make_submission("Model One"), factory.make_submission("Model Two")
    for problem, ours, theirs in zip(
        problems, (3.0, 1.00, 2.0, None), (1.5, 1.05, None, None), strict=True
    ):
        for submission, speedup in ((first, ours), (second, theirs)):
            if speedup:
                factory.make_judged(submission, problem, speedup=speedup)
            else:
                factory.make_judged(submission, problem, Verdict.OUTPUT_MISMATCH)
    return first, second


def address(*submissions: Submission, form: str = "") -> str:
    query = "&".join(f"{name}={s.pk}" for name, s in zip("abcde", submissions, strict=False))
    return f"/compare{form}?{query}"


def test_two_submissions_are_compared_problem_by_problem(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    found = client.get(address(*pair, form=".json")).json()
    apart, alike, only, none = found["problems"]
    assert found["submissions"] == [pair[0].pk, pair[1].pk]
    assert found["overlap"] == {"problems": 4, "every": 2, "none": 1, "only": [1, 0]}
    assert apart["a_over_b"] == pytest.approx(2.0)
    assert apart["a_and_b_apart"] is True
    assert (alike["a_and_b_apart"], only["a_over_b"]) == (False, None)
    assert (apart["a_low"], apart["b_high"]) == (pytest.approx(2.88), pytest.approx(1.575))
    assert (none["a_verdict"], none["a_speedup"]) == ("output_mismatch", None)
    rows = list(
        csv.DictReader(io.StringIO(client.get(address(*pair, form=".csv")).content.decode()))
    )
    assert [row["number"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[0]["a_run"] == apart["a_run"]


def test_speedups_are_compared_where_both_are_right(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    text = client.get(address(*pair)).content.decode()
    assert "Solved by both: 2. By neither: 1 of 4." in text
    assert text.count("not distinguishable</small>") == 1
    ours, theirs = math.sqrt(3.0 * 1.0), math.sqrt(1.5 * 1.05)
    row = text.split("Speedup where both are correct")[1].split("</tr>")[0]
    assert f"{ours:.2f}×" in row
    assert f"{theirs:.2f}×" in row
    tensor = text.split("Tensor Parallel</a></th>")[1].split("</tr>")[0]
    assert [part.split("<")[0] for part in tensor.split('class="num">')[1:5]] == [
        "3",
        "3",
        "2",
        "2",
    ]


def test_categories_lead_to_their_pages_in_the_same_setting(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    for submission in pair:
        run = factory.make_run(submission.kernels.all()[0], profile="upstream")
        factory.finish(run, factory.make_report(run))
    for asked, kept in (("", ""), ("&profile=upstream&other=1", "?profile=upstream")):
        text = client.get(address(*pair) + asked).content.decode()
        for category in ("tensor", "expert"):
            assert f'<th scope="row" class="first"><a href="/categories/{category}{kept}">' in text


def test_up_to_five_fit_and_every_page_asks_little(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    more = [factory.make_submission(f"Model {n}") for n in range(3)]
    problem = factory.make_problem()
    for submission in more:
        factory.make_judged(submission, problem, speedup=1.1)
    with CaptureQueriesContext(connection) as queries:
        found = client.get(address(*pair, *more, form=".json")).json()
    assert len(found["submissions"]) == 5
    assert found["overlap"]["every"] == 1
    assert found["problems"][0]["a_over_e"] == pytest.approx(3.0 / 1.1)
    assert len([q for q in queries if "dataversion" not in q["sql"]]) <= 4
    assert "Solved by all 5: 1." in client.get(address(*pair, *more)).content.decode()


def test_a_model_stands_for_its_best_submission(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    worse = factory.make_submission("Model One", "agentic")
    factory.make_judged(worse, factory.make_problem(), speedup=0.5)
    slug = pair[0].model.slug
    found = client.get(f"/compare.json?a={slug}&b={worse.pk}").json()
    assert found["submissions"] == [pair[0].pk, worse.pk]
    same = client.get(f"/compare.json?a={slug}&b={pair[0].pk}").json()
    assert same["submissions"] == [pair[0].pk]
    assert same["problems"] == []


def test_ticked_rows_get_an_address_of_their_own(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    ticked = client.get(f"/compare?with={pair[0].pk}&with={pair[1].pk}&profile=hardened&x=1")
    assert ticked["Location"] == f"/compare?a={pair[0].pk}&b={pair[1].pk}&profile=hardened"
    assert client.get(ticked["Location"]).status_code == 200


def test_with_fewer_than_two_there_is_a_choice(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    text = client.get("/compare").content.decode()
    assert text.count("<select") == 3
    assert f'<option value="{pair[0].pk}">Model One, zero-shot, no. {pair[0].pk}</option>' in text
    assert "One submission is chosen" in client.get(address(pair[0])).content.decode()


def test_an_empty_site_has_nothing_to_compare(client: Client) -> None:
    assert "Nothing has been judged yet" in client.get("/compare").content.decode()
    for form in (".json", ".csv"):
        assert client.get(f"/compare{form}").status_code == 200


def test_what_is_not_public_cannot_be_named_or_chosen(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    for visibility in (Visibility.PRIVATE, Visibility.UNLISTED):
        hidden = factory.make_submission("Secret Model", visibility=visibility)
        factory.make_judged(hidden, factory.make_problem())
        for value in (hidden.pk, hidden.model.slug):
            refused = client.get(f"/compare?a={pair[0].pk}&b={value}")
            assert refused.status_code == 400
            assert "Secret" not in refused.content.decode()
        assert "Secret" not in client.get("/compare").content.decode()


def test_one_twice_is_not_two(pair: tuple[Submission, Submission], client: Client) -> None:
    first, says = pair[0], "Choose two different ones."
    assert says in client.get(f"/compare?a={first.pk}&b={first.model.slug}").content.decode()
    assert says not in client.get(f"/compare?a={first.pk}").content.decode()
    assert "or the slug of any model" in client.get("/compare?a=abc").content.decode()


@pytest.mark.parametrize("query", ["a=nobody", "b=0", f"a={9**40}", "profile=x", "kernels=abc"])
def test_what_cannot_be_read_is_a_clear_400(
    query: str, pair: tuple[Submission, Submission], client: Client
) -> None:
    response = client.get(f"/compare?{query}")
    assert response.status_code == 400
    assert "use one of" in response.content.decode()


def runs_of(pair: tuple[Submission, Submission], problem: int) -> list[Run]:
    runs = Run.objects.filter(kernel__problem=problem).select_related("kernel")
    return [runs.get(kernel__submission=submission) for submission in pair]


def kernels_address(*runs: Run, form: str = "") -> str:
    return f"/compare{form}?kernels={','.join(run.kernel.source_id for run in runs)}"


def test_two_kernels_are_compared_down_to_their_lines(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    first, second = runs_of(pair, 1)
    with CaptureQueriesContext(connection) as queries:
        text = client.get(kernels_address(first, second)).content.decode()
    assert len([q for q in queries if "dataversion" not in q["sql"]]) <= 4
    assert "A is 2.00× as fast as B, each by its own reference." in text
    assert "1 line removed, 1 added" in text
    assert f"# {pair[0].pk} 1 1" in text.split('class="removed"')[1].split("</tr>")[0]
    assert f"# {pair[1].pk} 1 1" in text.split('class="added"')[1].split("</tr>")[0]
    found = client.get(kernels_address(first, second, form=".json")).json()["kernels"]
    assert [row["speedup"] for row in found] == [3.0, 1.5]
    alike = client.get(kernels_address(*runs_of(pair, 2))).content.decode()
    assert "not distinguishable: their intervals overlap" in alike


def test_a_form_asks_for_two_kernels(pair: tuple[Submission, Submission], client: Client) -> None:
    assert client.get("/compare").content.decode().count('name="kernels"') == 2
    digests = [run.kernel.source_id for run in runs_of(pair, 1)]
    sent = client.get("/compare", {"kernels": [f" {digests[0]}", digests[1]]})
    assert sent["Location"] == f"/compare?kernels={digests[0]},{digests[1]}"
    assert client.get("/compare?kernels=a&kernels=b", follow=True).status_code == 400


def test_kernels_judged_apart_are_not_compared_by_time(client: Client) -> None:
    problem, submission = factory.make_problem(), factory.make_submission()
    runs = []
    for dtype in ("float32", "bfloat16"):
        kernel = factory.make_kernel(
            factory.make_submission(), problem, source=f"def solution(): ...  # {dtype}\n"
        )
        run = factory.make_run(kernel, dtype=dtype)
        runs.append(factory.finish(run, factory.make_report(run)))
    text = client.get(kernels_address(*runs)).content.decode()
    assert "Different settings." in text
    assert "as fast as B" not in text
    other = factory.make_judged(submission, factory.make_problem(2, "gemm"))
    assert "Different problems." in client.get(kernels_address(runs[0], other)).content.decode()


def test_a_private_kernel_is_not_compared_with_anything(
    pair: tuple[Submission, Submission], client: Client
) -> None:
    hidden = factory.make_submission("Secret Model", visibility=Visibility.PRIVATE)
    secret = factory.make_judged(hidden, factory.make_problem())
    client.force_login(factory.make_user("owner"))
    public = runs_of(pair, 1)[0]
    assert client.get(kernels_address(public, secret)).status_code == 404
    assert client.get(f"/compare?kernels={'0' * 64},{'1' * 64}").status_code == 404


def test_hostile_names_are_harmless_side_by_side(client: Client) -> None:
    hostile, problem = "<img src=x onerror=alert(1)>\u202e\"'", factory.make_problem()
    runs = [
        factory.make_judged(factory.make_submission(f"{hostile}{n}"), problem) for n in range(2)
    ]
    pair = [run.kernel.submission for run in runs]
    for page in (address(*pair), kernels_address(*runs), "/compare"):
        text = client.get(page).content.decode()
        assert "<img" not in text, page
        assert "\u202e" not in text, page
        assert "&lt;img" in text, page
