"""What the API answers, to whom, and how cheaply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.conf import settings as site_settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator import Verdict
from leaderboard.models import (
    DataVersion,
    Problem,
    Run,
)
from tests.leaderboard import factory
from tests.leaderboard.running import NO_TRITON, decline

pytestmark = pytest.mark.server

SCHEMA = Path(site_settings.BASE_DIR) / "docs" / "openapi.yaml"


HELLO = {
    **{"host": "h", "hardware": "2 x CPU", "queue": "cpu", "isolation": "bwrap"},
    **{"versions": {"torch": "2.13.0"}, "judge_version": "1"},
}


def _schema() -> dict[str, Any]:
    import yaml

    return dict(yaml.safe_load(SCHEMA.read_text()))


def test_the_committed_schema_is_the_one_of_the_code(db: None, tmp_path: Path) -> None:
    fresh = tmp_path / "openapi.yaml"
    call_command("spectacular", file=str(fresh), validate=True, fail_on_warn=True)
    command = "python manage.py spectacular --file docs/openapi.yaml"
    assert fresh.read_text() == SCHEMA.read_text(), f"run: {command}"


@pytest.mark.parametrize(
    ("path", "component", "is_list"),
    [
        ("problems", "ProblemOut", True),
        ("categories", "CategoryOut", True),
        ("models", "LanguageModelOut", True),
        ("submissions", "SubmissionOut", True),
        ("submissions/{submission}", "SubmissionOut", False),
        ("kernels/{kernel}", "KernelOut", False),
        ("runs", "RunLineOut", True),
        ("runs/{run}", "RunOut", False),
        ("leaderboard", "BoardOut", False),
        ("status", "StatusOut", False),
    ],
)
def test_answers_have_the_shape_that_the_schema_says(
    run: Run, client: Client, path: str, component: str, is_list: bool
) -> None:
    factory.finish(run, factory.make_report(run))
    names = {"submission": run.kernel.submission_id, "kernel": run.kernel.source_id, "run": run.id}
    answer = client.get("/api/v1/" + path.format(**names))
    assert answer.status_code == 200, answer.content
    body = answer.json()
    rows = body.get("results", body) if isinstance(body, dict) and is_list else body
    schemas = {"components": _schema()["components"]}
    validator = jsonschema.Draft202012Validator(
        {**_nullable(schemas), "$ref": f"#/components/schemas/{component}"}
    )
    for row in rows if is_list else [rows]:
        validator.validate(row)
    assert rows


def _nullable(value: Any) -> Any:
    """OpenAPI 3.0's `nullable` in the words of JSON Schema."""
    if isinstance(value, list):
        return [_nullable(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _nullable(item) for key, item in value.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if value.get("nullable") is True else plain


def test_a_problem_is_found_by_number_and_by_slug(problem: Problem, client: Client) -> None:
    for name in ("1", "allreduce"):
        told = client.get(f"/api/v1/problems/{name}").json()
        assert next(row["hardware"] for row in told.pop("hardware_topology")) == "cpu"
        assert told == {**problem.payload, "judged_baselines": []}
    answer = client.get("/api/v1/problems/nothing")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_problem")


@pytest.mark.parametrize("path", ["nothing", "runs/x", "kernels/abc", "submissions/999", "x/"])
def test_what_there_is_not_is_said_in_the_one_shape(db: None, client: Client, path: str) -> None:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 404
    assert set(answer.json()["error"]) == {"code", "message", "fix"}


def test_a_fault_of_ours_is_said_in_the_one_shape(
    db: None, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(DataVersion.objects, "current", broken)
    client.raise_request_exception = False
    answer = client.get("/api/v1/status")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "server_error")
    assert b"secret" not in answer.content


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "bad_request_body"),
        (b"[]", "application/json", 400, "bad_request_body"),
        (b'"x"', "application/json", 400, "bad_request_body"),
        (b"\xff", "application/json", 400, "bad_request_body"),
        (b'{"a": NaN}', "application/json", 400, "bad_request_body"),
        (b"[" * 200_000, "application/json", 400, "bad_request_body"),
        (b"{}", "text/plain", 415, "bad_content_type"),
        (b"x", "multipart/form-data", 400, "bad_request_body"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    submitter: Any, body: bytes, kind: str, status: int, code: str
) -> None:
    answer = submitter.generic("POST", "/api/v1/submissions", body, content_type=kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_body_beyond_the_limit_is_never_read(db: None, client: Client, settings: Any) -> None:
    settings.PKB_MAX_BODY_BYTES = 10
    for path in ("/api/v1/submissions", "/api/v1/worker/hello"):
        answer = client.post(path, b"x" * 11, content_type="application/json")
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


SUBMIT, CANCEL, HELLO_URL = "submissions", "runs/{run}/cancel", "worker/hello"


def test_a_run_tells_where_it_is(run: Run, client: Client) -> None:
    url = f"/api/v1/runs/{run.id}"
    body = client.get(url).json()
    assert (body["status"], body["queue_position"], body["timing"]) == ("queued", 1, None)
    assert body["waiting_s"] >= 0
    factory.start(run)
    body = client.get(url).json()
    assert (body["phase"], body["progress"]) == ("verify", {"done": 2, "total": 6})
    assert (body["host"], body["queue_position"]) == ("host-1", None)
    factory.finish(run, factory.make_report(run, speedup=1.5))
    body = client.get(url).json()
    assert (body["verdict"], body["timing"]["speedup"]) == ("ok", 1.5)
    assert body["url"] == f"http://testserver/runs/{run.id}"
    assert client.get(f"{url}/report").json()["timing"]["kernel"]["answer_us"] == 100 / 1.5


def test_a_later_run_waits_behind_an_earlier_one(run: Run, client: Client) -> None:
    later = factory.make_run(run.kernel)
    assert client.get(f"/api/v1/runs/{later.id}").json()["queue_position"] == 2


def test_a_declined_run_waits_and_says_why(run: Run, client: Client) -> None:
    later = factory.make_run(run.kernel)
    url = f"/api/v1/runs/{run.id}"
    assert client.get(url).json()["declines"] == []
    decline(run)
    decline(run, "host-2", "too little memory")
    body = client.get(url).json()
    assert (body["status"], body["verdict"], body["message"]) == ("queued", None, "")
    told = [(each["host"], each["reason"]) for each in body["declines"]]
    assert told == [("host-2", "too little memory"), ("host-1", NO_TRITON)]
    page = client.get(f"/runs/{run.id}.json").json()
    assert [(each["host"], each["reason"]) for each in page["declines"]] == told
    # It holds up nobody.
    assert client.get(f"/api/v1/runs/{later.id}").json()["queue_position"] == 1


def test_of_many_declines_the_newest_are_told(run: Run, client: Client) -> None:
    for number in range(12):
        decline(run, f"host-{number}")
    told = client.get(f"/api/v1/runs/{run.id}").json()["declines"]
    assert [each["host"] for each in told] == [f"host-{number}" for number in range(11, 1, -1)]


def test_polling_a_run_is_cheap_until_something_happens(run: Run, client: Client) -> None:
    url = f"/api/v1/runs/{run.id}"
    etag = client.get(url)["ETag"]
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 304
    factory.start(run)
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 200


@pytest.mark.parametrize("path", ["problems", "categories", "models", "leaderboard"])
def test_public_answers_are_kept_until_the_data_changes(
    run: Run, client: Client, path: str
) -> None:
    url = f"/api/v1/{path}"
    answer = client.get(url)
    assert answer["Cache-Control"].startswith("public")
    assert "Cookie" not in answer["Vary"]
    etag = answer["ETag"]
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url, headers={"If-None-Match": etag}).status_code == 304
    assert len(queries) == 1
    DataVersion.objects.bump()
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 200


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("problems", 2), ("problems/1", 4), ("categories", 2), ("models", 2), ("submissions", 2),
        ("runs", 1), ("leaderboard", 5), ("status", 3),
    ],
)  # fmt: skip
def test_a_list_takes_as_many_queries_however_long_it_is(
    problem: Problem, client: Client, path: str, most: int
) -> None:
    for name in "ABCDE":
        submission = factory.make_submission(name, k=2)
        for _ in range(2):
            factory.make_judged(submission, problem)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(f"/api/v1/{path}").status_code == 200
    assert len(queries) <= most, [query["sql"][:120] for query in queries]


def test_runs_are_paged_without_counting(run: Run, client: Client) -> None:
    for attempt in range(2, 55):
        kernel = factory.make_kernel(run.kernel.submission, run.kernel.problem, attempt=attempt)
        factory.make_run(kernel)
    first = client.get("/api/v1/runs").json()
    second = client.get(first["next"]).json()
    ids = {row["id"] for row in first["results"] + second["results"]}
    assert (len(first["results"]), len(second["results"]), len(ids)) == (50, 4, 54)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("problem=1", 1),
        ("problem=allreduce", 1),
        ("status=queued", 1),
        ("status=done", 0),
        ("verdict=ok", 0),
        ("submission={submission}", 1),
        ("submission=0", 0),
    ],
)
def test_runs_are_filtered(run: Run, client: Client, query: str, rows: int) -> None:
    wanted = query.format(submission=run.kernel.submission_id)
    assert len(client.get(f"/api/v1/runs?{wanted}").json()["results"]) == rows


@pytest.mark.parametrize(
    "path", ["runs?submission=x", "runs?cursor=x", "leaderboard?sort=x", "leaderboard?profile=x"]
)
def test_a_query_that_cannot_be_read_is_refused(run: Run, client: Client, path: str) -> None:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["fix"]


def test_hostile_texts_come_back_as_text(run: Run, client: Client) -> None:
    nasty = "<script>alert(1)</script>\u202e\u2028" + "x" * 10_000
    report = factory.make_report(run, Verdict.RUNTIME_ERROR, message=nasty, cause=nasty)
    factory.finish(run, report)
    answer = client.get(f"/api/v1/runs/{run.id}")
    assert answer["Content-Type"] == "application/json"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert json.loads(answer.content)["message"] == nasty
