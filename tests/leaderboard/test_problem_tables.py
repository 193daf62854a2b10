"""The tables of a problem's page as CSV."""

from __future__ import annotations

import csv
import json
import re
from html import unescape

import pytest
from django.template.loader import get_template
from django.test import Client

from leaderboard.kit.json_types import JsonObject
from leaderboard.models import Problem
from leaderboard.problem_pages.problem_facts import Task
from leaderboard.runs.catalogue import EXPORT, read_file
from problems.limits import TERMS
from tests.problems.limit_words import left_out

pytestmark = pytest.mark.django_db
CATALOGUE = read_file(EXPORT)


def table(client: Client, problem: Problem, query: str) -> list[dict[str, str]]:
    answer = client.get(f"{problem.get_absolute_url()}.csv?{query}")
    assert answer.status_code == 200
    return list(csv.DictReader(answer.text.splitlines()))


def test_floors_are_those_of_the_gpu_asked_for(problem: Problem, client: Client) -> None:
    rows = table(client, problem, "table=floors&gpu=h200-sxm")
    assert {(row["size"], row["ranks"]) for row in rows} == {("standard", "4"), ("tiny", "2")}
    assert {row["wire_bytes"] for row in rows} == {"2048.0"}
    assert all("H200" in row["gpu"] for row in rows)
    records = client.get(f"{problem.get_absolute_url()}.json?gpu=h200-sxm").json()["floors"]["rows"]
    assert [row["bound_us"] for row in rows] == [str(one["bound_us"]) for one in records]


def test_the_baseline_and_health_have_a_row_for_each_measurement(
    problem: Problem, client: Client
) -> None:
    (row,) = table(client, problem, "table=baseline")
    assert (row["gpu"], row["ranks"], row["median_us"]) == ("NVIDIA H200", "4", "31.9")
    assert (row["low_us"], row["high_us"], row["error"]) == ("31.5", "32.4", "0.4")
    health = table(client, problem, "table=health")
    answers = [(one["answer"], one["profile"], one["accepted"]) for one in health]
    assert ("zeros", "hardened", "False") in answers
    assert len(answers) == 4


def test_signature_and_tolerances_are_as_the_page_has_them(
    problem: Problem, client: Client
) -> None:
    names = [row["name"] for row in table(client, problem, "table=signature")]
    assert names == [one["name"] for one in problem.payload["signature"]]
    told = {row["dtype"]: float(row["atol"]) for row in table(client, problem, "table=tolerance")}
    assert told == {name: one["atol"] for name, one in problem.payload["tolerances"].items()}
    assert "must hold as well" not in client.get(problem.get_absolute_url()).content.decode()


def test_a_limit_on_the_root_mean_square_is_shown_where_there_is_one(
    problem: Problem, client: Client
) -> None:
    limited = {"atol": 3e-2, "rtol": 3e-2, "rms": 0.092, "outliers": 8}
    problem.payload["tolerances"]["bfloat16"] = limited
    problem.save()
    rows = table(client, problem, "table=tolerance")
    assert {row["dtype"]: row["rms"] for row in rows} == {"float32": "", "bfloat16": "0.092"}
    assert {row["dtype"]: row["outliers"] for row in rows} == {"float32": "", "bfloat16": "8"}
    page = client.get(problem.get_absolute_url()).content.decode()
    assert page.count("rms(abs(x - ref) / bound) &lt;= 0.092 must hold as well.") == 1


def test_an_output_has_a_tolerance_of_its_own(problem: Problem, client: Client) -> None:
    own = {"norm": {"float32": {"atol": 2e-5, "rtol": 3e-5}}}
    outputs = [*problem.payload["outputs"], "norm"]
    problem.payload = {**problem.payload, "outputs": outputs, "output_tolerances": own}
    problem.save()
    *_, last = table(client, problem, "table=tolerance")
    assert list(last.values()) == ["float32", "norm", "2e-05", "3e-05", "", ""]
    own_row = (
        '<td><code>norm</code></td><td class="why">abs(x - ref) &lt;= bound, where bound is 2e-05'
    )
    assert own_row in client.get(problem.get_absolute_url()).text


@pytest.mark.parametrize("given", CATALOGUE, ids=lambda given: str(given["slug"]))
def test_a_page_has_every_limit_of_the_catalogue(given: JsonObject) -> None:
    task = Task(payload=json.dumps(given), digest=given["digest"], url="/problems/1")
    made = get_template("_problem_health.html").render({"task": task})
    section = made.partition('<h2 id="tolerance">')[2].partition('<h2 id="health">')[0]
    bodies = re.findall(r"<tbody>(.*?)</tbody>", section)
    assert len(bodies) == len(given["tolerances"])
    for dtype, body in zip(given["tolerances"], bodies, strict=True):
        assert f"<code>{dtype}</code></th>" in body
        cells = re.findall(r'<td>(.*?)</td><td class="why">(.*?)</td>', body)
        said = [(re.findall("<code>(.*?)</code>", names), unescape(it)) for names, it in cells]
        assert left_out(given, dtype, said) == []
    assert unescape(section).count(TERMS) == 1


def test_the_page_links_them_and_refuses_others(problem: Problem, client: Client) -> None:
    page = client.get(problem.get_absolute_url()).text
    for query in ("floors&amp;gpu=h200-sxm", "baseline", "health", "signature", "tolerance"):
        assert f'href="{problem.get_absolute_url()}.csv?table={query}"' in page
    assert client.get(f"{problem.get_absolute_url()}.csv?table=prices").status_code == 400
