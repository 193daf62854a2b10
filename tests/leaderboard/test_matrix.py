"""Models by problems: every cell says what became of a pair and leads there; cheap when large."""

from __future__ import annotations

import csv
import gzip
import io
import random
import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.board_pages import matrix as views
from leaderboard.board_pages import matrix_rows
from leaderboard.delivery.pages import packed
from leaderboard.metrics.failures import FAILURE_MODES
from leaderboard.models import LanguageModel, Run, Visibility
from leaderboard.read_model.details import MatrixMark
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.server]


def cell(problem: int, speedup: Any = None, mode: str | None = "correct") -> MatrixMark:
    low = 0.9 * speedup if isinstance(speedup, float) else None
    return MatrixMark(problem=problem, best_speedup=speedup, best_low=low, mode=mode)


@pytest.fixture
def site() -> dict[str, Run]:
    one, two = factory.make_problem(), factory.make_problem(2, "gemm", "expert")
    first, second = factory.make_submission("Model One", k=2), factory.make_submission("Model Two")
    factory.make_judged(first, one, Verdict.BUILD_ERROR)
    runs = {"fast": factory.make_judged(first, one, speedup=2.5)}
    runs["late"] = factory.make_judged(first, two, Verdict.TIMEOUT)
    runs["slow"] = factory.make_judged(second, one, speedup=0.4)
    return runs


@pytest.mark.parametrize(
    ("speedup", "code"),
    [(9.0, "z"), (2.0, "z"), (1.2, "y"), (1.1, "x"), (0.5, "x"), (0.49, "w")],
)
def test_a_right_kernel_is_marked_by_its_speed(speedup: float, code: str) -> None:
    mark = matrix_rows.mark_of(cell(1, speedup))
    assert mark is not None
    assert mark.code == code


def test_every_way_to_fail_has_a_sign_of_its_own() -> None:
    marks = [matrix_rows.mark_of(cell(1, mode=mode)) for mode in FAILURE_MODES[:-1]]
    assert all(marks)
    for is_timed, count in ((True, 11), (False, 8)):
        legend = matrix_rows.legend(is_timed=is_timed)
        assert len({mark.glyph for mark in legend}) == len({mark.code for mark in legend}) == count
    assert matrix_rows.mark_of(cell(1, mode=None)) is None


def test_a_cell_takes_only_numbers_and_escapes_the_rest() -> None:
    drawn = matrix_rows.row_cells(7, (cell(1, 2.0),), ((1,),), '"><script>')
    assert "<script" not in drawn
    assert "&lt;script" in drawn
    for wrong in ("1", "<script>", True):
        odd = cell(1, wrong, FAILURE_MODES[0])._replace(best_low=None)
        with pytest.raises(TypeError, match="number or None"):
            matrix_rows.row_cells(7, (odd,), ((1,),), "")


def test_a_category_begins_with_an_edge() -> None:
    drawn = matrix_rows.row_cells(7, (cell(2, 2.5), cell(3, mode=None)), ((1, 2), (3, 4)), "")
    kinds = re.findall('<td class="([^"]+)"', drawn)
    assert kinds == ["o g", "z", "o g", "o"]


def test_cells_say_what_happened_and_lead_there(site: dict[str, Run], client: Client) -> None:
    text = client.get("/matrix").content.decode()
    submission = site["fast"].kernel.submission_id
    assert f'href="/matrix/{submission}/1" title="1: 2.50×"' in text
    assert f'href="/matrix/{submission}/2" title="2: deadlock"' in text
    assert '<td class="o g">·</td>' in text  # Model Two has nothing for problem 2
    for name, problem in (("fast", 1), ("late", 2)):
        answer = client.get(f"/matrix/{submission}/{problem}")
        assert answer["Location"] == f"/runs/{site[name].id}"
    with CaptureQueriesContext(connection) as queries:
        client.get(f"/matrix/{submission}/1")
    assert len(queries) <= 4


def test_a_row_that_is_cut_says_whose_it_is(site: dict[str, Run], client: Client) -> None:
    LanguageModel.objects.filter(name="Model One").update(name='Model "One"')
    number = site["fast"].kernel.submission_id
    title = f'id="s{number}" title="Model &#34;One&#34;, zero-shot, no. {number}">'
    assert title in client.get("/matrix").content.decode()


def test_twins_hold_every_cell(site: dict[str, Run], client: Client) -> None:
    found = client.get("/matrix.json").json()
    rows = list(csv.DictReader(io.StringIO(client.get("/matrix.csv").content.decode())))
    assert [problem["number"] for problem in found["problems"]] == [1, 2]
    assert len(found["cells"]) == len(rows) == 3
    best = next(row for row in rows if row["speedup"] == "2.5")
    assert (best["model"], best["made"], best["correct"]) == ("Model One", "2", "1")
    assert best["run"] == str(site["fast"].id)
    assert found["cells"][0]["kernel"] == site["fast"].kernel.source_id


def test_filters_leave_columns_and_rows_out(site: dict[str, Run], client: Client) -> None:
    found = client.get("/matrix.json?category=expert").json()
    assert [problem["number"] for problem in found["problems"]] == [2]
    assert [row["verdict"] for row in found["cells"]] == ["timeout"]
    assert client.get("/matrix.json?harness=agentic").json()["cells"] == []
    assert client.get("/matrix?category=nonsense").status_code == 400
    text = client.get("/matrix?p=2&harness=zero-shot").content.decode()
    assert '<a href="/matrix?category=expert&amp;p=2&amp;harness=zero-shot"' in text


def test_an_unscored_problem_has_a_column_without_results(
    site: dict[str, Run], client: Client
) -> None:
    other = factory.make_problem(3, "odd")
    other.scored, other.unscored_reason = False, "Its reference is wrong."
    other.save()
    factory.make_judged(site["fast"].kernel.submission, other)
    page = client.get("/matrix").text
    assert "1 problem is not scored" in page
    assert 'title="Problem odd, not scored">3</a>' in page
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    assert [body.count(mark) for mark in (">–</td>", f"/{other.number}?")] == [body.count("<tr"), 0]
    found = client.get("/matrix.json").json()
    assert [one["number"] for one in found["problems"] if not one["scored"]] == [3]
    assert {row["problem"] for row in found["cells"]} == {1, 2}


def test_what_is_not_public_is_not_in_the_matrix(client: Client) -> None:
    problem = factory.make_problem()
    for visibility in (Visibility.PRIVATE, Visibility.UNLISTED):
        hidden = factory.make_submission("Secret Model", visibility=visibility)
        factory.make_judged(hidden, problem)
        factory.make_judged(factory.make_submission("Open Model"), problem)
        for form in ("", ".json", ".csv"):
            assert "Secret Model" not in client.get(f"/matrix{form}").content.decode()
        assert client.get(f"/matrix/{hidden.pk}/1").status_code == 404
        assert client.get(f"/matrix/{hidden.pk}").status_code == 404


def test_an_empty_matrix_and_unknown_cells_answer(client: Client) -> None:
    assert client.get("/matrix").status_code == 200
    assert client.get("/matrix.csv").status_code == 200
    assert client.get("/matrix/1/1").status_code == 404
    assert client.get("/matrix/1/1?profile=x").status_code == 400


def test_the_page_asks_four_things_of_the_database(site: dict[str, Run], client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        client.get("/matrix")
    assert len([q for q in queries if "dataversion" not in q["sql"]]) <= 4


def test_a_long_matrix_has_parts_and_whole_twins(
    site: dict[str, Run], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "ROWS_A_PAGE", 1)
    first, second = (client.get(f"/matrix?{tail}").content.decode() for tail in ("", "page=2"))
    assert [text.count('class="first name"') for text in (first, second)] == [1, 1]
    assert '<a href="/matrix?page=2" rel="next">Next</a>' in first
    assert '<a href="/matrix" rel="prev">Previous</a>' in second
    assert "1 to 1 of 2 submissions" in first
    assert "2 to 2 of 2 submissions" in second
    foot = '<td class="num">2</td><td class="num">0</td>'
    assert foot in first
    assert foot in second  # of all rows, not of those shown
    assert len(client.get("/matrix.json?page=2").json()["cells"]) == 3
    kept = client.get("/matrix?harness=zero-shot").content.decode()
    assert "/matrix?harness=zero-shot&amp;page=2" in kept
    for page in ("3", "0", "x", "02"):
        assert client.get(f"/matrix?page={page}").status_code == (
            404 if page in ("3", "0") else 400
        )


def test_a_baseline_is_not_counted_among_those_that_solved_a_problem(
    site: dict[str, Run], client: Client
) -> None:
    model = site["slow"].kernel.submission.model
    LanguageModel.objects.filter(pk=model.pk).update(is_baseline=True)
    page = client.get("/matrix").content.decode()
    assert '<td class="num">1</td><td class="num">0</td></tr></tfoot>' in page
    assert page.count('class="first name"') == 2
    assert "Submissions that solved it <small>without <bdi>Model Two</bdi></small>" in page


def test_a_row_has_an_address_that_finds_its_part(
    site: dict[str, Run], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "ROWS_A_PAGE", 1)
    fast, slow = (site[name].kernel.submission_id for name in ("fast", "slow"))
    asked = "harness=zero-shot&hardware=cpu"
    for number, part in ((fast, ""), (slow, "&page=2")):
        answer = client.get(f"/matrix/{number}?{asked}&other=1")
        assert answer["Location"] == f"/matrix?{asked}{part}#s{number}"
        assert f'id="s{number}"' in client.get(answer["Location"]).content.decode()
    assert client.get(f"/matrix/{fast}")["Location"] == f"/matrix#s{fast}"
    assert client.get(f"/matrix/{slow}?category=expert").status_code == 404  # not under that filter
    assert client.get("/matrix/999").status_code == 404
    assert client.get(f"/matrix/{fast}?profile=x").status_code == 400


def test_a_model_and_a_submission_lead_to_their_row(
    site: dict[str, Run], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the setting that they were judged in, which need not be the one the matrix shows first."""
    monkeypatch.setattr(views, "ROWS_A_PAGE", 1)
    slow = site["slow"].kernel.submission
    for name in ("Large One", "Large Two", "Large Three", "Large Four"):
        kernel = factory.make_kernel(factory.make_submission(name), site["slow"].kernel.problem)
        run = factory.make_run(kernel, size="large")
        factory.finish(run, factory.make_report(run))
    assert client.get(f"/matrix/{slow.pk}").status_code == 404
    for page in (slow.get_absolute_url(), f"/models/{slow.model.slug}"):
        found = re.search(rf'href="(/matrix/{slow.pk}\?[^"]+)"', client.get(page).content.decode())
        assert found, page
        answer = client.get(unescape(found[1]))
        assert "size=tiny" in answer["Location"]
        assert answer["Location"].endswith(f"page=2#s{slow.pk}")
        assert f'id="s{slow.pk}"' in client.get(answer["Location"]).content.decode()


def test_a_part_of_the_matrix_stays_small() -> None:
    draw = random.Random(1)
    numbers = range(1, 88)
    groups = tuple(tuple(numbers[at : at + 9]) for at in range(0, 87, 9))
    rows = []
    for number in range(views.ROWS_A_PAGE):
        skill = draw.random()
        found = tuple(
            cell(n, draw.lognormvariate(0, 0.7))
            if draw.random() < skill
            else cell(n, mode=draw.choice(FAILURE_MODES[:-1]))
            for n in numbers
        )
        rows.append(matrix_rows.row_cells(number, found, groups, ""))
    body = packed("".join(rows), "html", None).body
    assert len(body) <= 19_000, len(body)
    assert len(re.findall("<td", gzip.decompress(body).decode())) == 87 * views.ROWS_A_PAGE
