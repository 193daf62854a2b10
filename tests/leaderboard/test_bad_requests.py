"""Requests that once were answered 500, or not in words."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from evaluator import Report
from leaderboard.kit.request_error import RequestError
from leaderboard.models import ApiToken, Run, Scope
from leaderboard.runs.reports import decoded
from leaderboard.submissions import teams
from tests.leaderboard import factory
from tests.leaderboard.running import claim, report_of

HUGE = 10**400


def _cursor(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize("name", ["status", "verdict", "problem", "placement", "cursor"])
def test_a_nul_in_a_filter_is_refused(db: None, client: Client, name: str) -> None:
    answer = client.get(f"/api/v1/runs?{name}=a%00b")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_query")
    page = client.get(f"/search?{name}=%00")
    assert page.status_code == 400
    assert "NUL" in page.text


@pytest.mark.parametrize("cost", [True, "1e999", -1])
def test_a_cost_is_a_number_of_dollars(run: Run, submitter: APIClient, cost: object) -> None:
    address = f"/api/v1/submissions/{run.kernel.submission_id}"
    answer = submitter.patch(address, {"cost_usd": cost}, format="json")
    assert answer.status_code == 400
    assert "cost_usd" in answer.json()["error"]["fields"]


def test_a_nul_in_a_reason_or_a_name_is_refused(run: Run, client: Client, owner: User) -> None:
    client.force_login(owner)
    teams.create(owner, "Acme")
    page = run.kernel.submission.get_absolute_url()
    for address, form in (
        (f"/complain/run/{run.pk}", {"text": "a\0b"}),
        (f"{page}/withdraw", {"reason": "a\0b"}),
        ("/account/teams/acme", {"do": "issue", "token": "a\0b"}),
    ):
        answer = client.post(address, form)
        assert answer.status_code == 400
        assert "has a NUL character" in answer.text


@pytest.mark.parametrize(
    "cursor",
    [
        *("p=x", "o=5&p=9", "o=99999999999999999999&p=2026-13-01", "p=2026-01-01"),
        "p=0001-01-01 00:00:00%2B23:59",
    ],
)
@pytest.mark.parametrize("path", ["runs", "submissions", "runs?submission=1&"])
def test_a_cursor_that_no_page_links_to_is_refused(
    db: None, client: Client, path: str, cursor: str
) -> None:
    sign = "" if path.endswith("&") else "?"
    answer = client.get(f"/api/v1/{path}{sign}cursor={_cursor(cursor)}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_pages_of_the_api_lead_on_and_back(run: Run, client: Client) -> None:
    for _ in range(50):
        factory.make_run(run.kernel)
    for query in ("", "?submission=" + str(run.kernel.submission_id)):
        second = client.get(client.get(f"/api/v1/runs{query}").json()["next"])
        assert len(second.json()["results"]) == 1
        first = client.get(second.json()["previous"])
        assert len(first.json()["results"]) == 50


def test_numbers_and_parameters_beyond_all_bounds_are_not_found(run: Run, client: Client) -> None:
    factory.finish(run, factory.make_report(run))
    number = run.kernel.submission_id
    assert client.get(f"/matrix/{HUGE}/1").status_code == 404
    assert client.get(f"/matrix/{number}/{HUGE}").status_code == 404
    for path in (f"/matrix/{number}", f"/matrix/{number}/1"):
        answer = client.get(f"{path}?drawn=cpu")
        assert (answer.status_code, "drawn" in answer["Location"]) == (302, False)
    assert client.get("/api/v1/leaderboard?drawn=cpu").status_code == 400


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all numbers in a message, of lists the first entry only."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        yield from _leaves(value[0], (*path, 0))
    elif isinstance(value, int | float):
        yield path


def test_no_number_of_a_report_is_too_large_to_be_refused(run: Run) -> None:
    report = report_of(run)
    paths = list(_leaves(report))
    assert ("timing", "kernel_us") in paths
    assert ("trials", 0, "checks", 0, "rank") in paths
    for path in paths:
        for value in (HUGE, -HUGE, 1 << 70):
            changed = json.loads(json.dumps(report))
            at = changed
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            with pytest.raises(RequestError, match=r"beyond 64 bits|must be bool"):
                decoded(Report, changed, "report")


def test_what_a_host_says_that_cannot_be_written_is_refused(
    run: Run,
) -> None:
    _, text = ApiToken.objects.issue(scope=Scope.WORKER, name="worker")
    sender = APIClient(raise_request_exception=False)
    sender.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    holding = claim(run).holding
    report = report_of(run)
    report["environment"]["host"] = "\ud800"
    body = {"lease_token": holding.lease_token, "report": report}
    at, kind = f"/api/v1/worker/runs/{run.id}/finish", "application/json"
    answer = sender.post(at, json.dumps(body), content_type=kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "wrong_origin")
    hello = {
        **{"host": "h", "hardware": "2 x CPU", "queue": "cpu", "isolation": "bwrap"},
        **{"versions": {"\0": "1"}, "judge_version": "1"},
    }
    answer = sender.post("/api/v1/worker/hello", json.dumps(hello), content_type=kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")


def test_a_post_to_no_address_of_the_api_is_not_found_in_json(db: None) -> None:
    strict = Client(enforce_csrf_checks=True)
    for method in ("post", "put", "delete", "get"):
        answer = getattr(strict, method)("/api/v1/nothing")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_a_body_in_chunks_is_refused_with_words(submitter: APIClient, client: Client) -> None:
    chunked: Any = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    answer = submitter.post("/api/v1/submissions", **chunked)
    assert (answer.status_code, answer.json()["error"]["code"]) == (411, "no_length")
    assert "Content-Length" in client.post("/submit", **chunked).text


def test_limits_of_forms_are_explained(submitter: APIClient, client: Client, owner: User) -> None:
    client.force_login(owner)
    files = {f"file{n}": SimpleUploadedFile("a", b"x") for n in range(101)}
    answer = submitter.post("/api/v1/submissions", files, format="multipart")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "too_many_files")
    for file in files.values():
        file.seek(0)
    page = client.post("/submit", files)
    assert page.status_code == 400
    assert "more than 100 files" in page.text
    fields = {f"field{n}": "x" for n in range(1001)}
    answer = submitter.post("/api/v1/submissions", fields, format="multipart")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "too_many_fields")
    assert "more than 1000 fields" in client.post("/submit", fields).text


def test_a_report_says_who_may_keep_it(run: Run, client: Client, submitter: APIClient) -> None:
    factory.finish(run, factory.make_report(run))
    for who, told in ((client, "public"), (submitter, "private")):
        answer: Any = who.get(f"/api/v1/runs/{run.id}/report")
        assert answer["Cache-Control"] == f"{told}, max-age=0, must-revalidate"
        assert "Authorization" in answer["Vary"]
