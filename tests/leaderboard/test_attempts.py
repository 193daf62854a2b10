"""Attempts from the harness to the page: steps, what they took, and what was said, told by a file
that anybody may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.models import (
    FoundLanguages,
    Kernel,
    Making,
    Problem,
    Run,
    Source,
    Submission,
    Transcript,
)
from leaderboard.models.generation_usage import MAX_TRANSCRIPT_BYTES, RISING
from leaderboard.read_model import summary_check
from leaderboard.read_model.transcripts import PART_CHARS, parts_of
from tests.leaderboard import factory
from tests.leaderboard.attempt_files import (
    AGENTIC,
    HOSTILE,
    LINE,
    TRANSCRIPT,
    files_in,
    made_of,
    packed,
    zipped,
)
from tests.leaderboard.uploads import Send

pytestmark = [pytest.mark.django_db, pytest.mark.server]
PAGE = "/submissions/{}/1/attempt-1"


@pytest.fixture
def attempt(send: Send, tmp_path: Path) -> Submission:
    """An attempt of two steps as the harness packed it, handed in and judged."""
    answer = send(AGENTIC, packed(tmp_path))
    assert answer.status_code == 201, answer.json()
    first, second = Run.objects.order_by("kernel__step")
    factory.finish(first, factory.make_report(first, Verdict.OUTPUT_MISMATCH))
    factory.finish(second, factory.make_report(second, speedup=1.5))
    return Submission.objects.get()


def test_what_pack_writes_is_stored_with_its_kernels(attempt: Submission) -> None:
    first, second = Making.objects.order_by("kernel__step")
    assert (first.ended, second.ended) == ("", "done")
    assert [one.output_tokens for one in (first, second)] == [10, 40]
    assert second.judge_runs == 1
    assert second.cost_usd == pytest.approx((4 * 90 * 1000 + 4 * 10 * 20000) / 1e6)
    assert attempt.cost_usd == second.cost_usd
    assert attempt.manifest["recipe"] == "agentic"
    assert attempt.manifest["sampling"]["max_output_tokens"] > 0
    assert Transcript.objects.get().size_bytes == len(Transcript.objects.get().text.encode())


def test_the_page_shows_steps_beside_verdicts_tokens_cost_and_what_was_said(
    attempt: Submission, client: Client
) -> None:
    page = client.get(PAGE.format(attempt.pk)).text
    for shown in ("output mismatch", ">40</td>", "1.16", "done", "verdict: output_mismatch"):
        assert shown in page
    assert '<h2 id="diff">From step 1 to step 2' in page
    assert "return tensor.clone()" in page
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;red[U+202E]" in page
    assert "\x1b" not in page
    for leading in (
        f"/submissions/{attempt.pk}",
        Kernel.objects.all()[0].source.get_absolute_url(),
    ):
        assert f'href="{PAGE.format(attempt.pk)}"' in client.get(leading).text


def test_json_csv_and_api_say_the_same(attempt: Submission, client: Client) -> None:
    page = client.get(f"{PAGE.format(attempt.pk)}.json").json()
    told = client.get(f"/api/v1{PAGE.format(attempt.pk)}").json()
    assert told["steps"] == page["steps"]
    assert told["transcript"] == page["transcript"]
    assert [step["runs"][0]["verdict"] for step in told["steps"]] == ["output_mismatch", "ok"]
    assert told["steps"][1]["made"]["output_tokens"] == 40
    assert told["transcript_pages"] == 1
    assert client.get(f"/api/v1{PAGE.format(attempt.pk)}?page=2").status_code == 400
    rows = client.get(f"{PAGE.format(attempt.pk)}.csv").text.splitlines()
    assert [row.split(",")[0] for row in rows] == ["step", "1", "2"]
    of_all = client.get(f"/submissions/{attempt.pk}.json").json()
    assert [one["output_tokens"] for one in of_all["kernels"]] == [10, 40]
    assert of_all["output_tokens"] == 40
    assert client.get(f"/api/v1/submissions/{attempt.pk}").json()["manifest"] == attempt.manifest


def test_boards_tell_what_a_solved_problem_took_and_the_check_agrees(
    attempt: Submission, client: Client
) -> None:
    (row,) = client.get("/leaderboard.json").json()["rows"]
    assert row["solved_tokens"] == 40
    assert row["solved_usd"] == pytest.approx(1.16)
    assert "tokens a solved problem" in client.get("/?columns=all").text
    assert summary_check.differences() == []
    call_command("rebuild_summary", verbosity=0)
    assert summary_check.differences() == []
    assert client.get("/leaderboard.json").json()["rows"] == [row]


def test_what_one_attempt_does_not_tell_is_told_of_none(
    attempt: Submission, client: Client, problem: Problem
) -> None:
    other = factory.make_problem(2, "allgather")
    factory.make_judged(attempt, other)
    (row,) = client.get("/leaderboard.json").json()["rows"]
    assert (row["correct"], row["solved_tokens"], row["solved_usd"]) == (2, None, None)
    assert summary_check.differences() == []


def test_a_backend_is_told_beside_the_languages_found(problem: Problem, client: Client) -> None:
    kernel = factory.make_submission().kernels.create(
        problem=problem, backend="triton", source=Source.objects.keep(factory.SOURCE)[0]
    )
    pages = (kernel.source.get_absolute_url(), f"/submissions/{kernel.submission_id}")
    for page in (*pages, PAGE.format(kernel.submission_id)):
        assert "triton declared, pytorch found" in client.get(page).text
    (use,) = client.get(f"/api/v1{pages[0]}").json()["uses"]
    assert (use["backend"], use["languages"]) == ("triton", ["pytorch"])
    FoundLanguages.objects.all().delete()  # as an older release left it
    call_command("migrate", verbosity=0)
    assert FoundLanguages.objects.get().names == "pytorch"


def test_a_private_attempt_is_its_owners(attempt: Submission, client: Client, owner: User) -> None:
    Submission.objects.update(visibility="private")
    address = PAGE.format(attempt.pk)
    for form in ("", ".json", ".csv", "?diff=2"):
        assert client.get(address + form).status_code == 404
    assert client.get(f"/api/v1{address}").status_code == 404
    client.force_login(owner)
    answer = client.get(address)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize(
    "address",
    [
        *("1/2/attempt-1", "1/1/attempt-2", "9/1/attempt-1", f"1/{9**40}/attempt-1"),
        *(f"1/1/attempt-{9**40}", f"{9**40}/1/attempt-1"),
    ],
)
def test_what_is_not_there_is_not_found(attempt: Submission, client: Client, address: str) -> None:
    number, rest = address.split("/", 1)
    own = f"/submissions/{attempt.pk if number == '1' else number}/{rest}"
    assert client.get(own).status_code == 404
    assert client.get(f"/api/v1{own}").status_code == 404


def test_what_nobody_tells_is_not_told(send: Send, client: Client) -> None:
    assert send(AGENTIC, made_of()).status_code == 201
    submission = Submission.objects.get()
    page = client.get(PAGE.format(submission.pk)).text
    assert page.count("not told") == 6
    assert "No transcript" in page
    assert submission.cost_usd is None


def test_tokens_of_some_answers_are_not_those_of_all(send: Send, client: Client) -> None:
    line = {**LINE, "usage": {"output": 7}, "answers": 3, "answers_without_usage": 1}
    send(AGENTIC, made_of(line))
    run = Run.objects.get()
    factory.finish(run, factory.make_report(run))
    page = client.get(PAGE.format(run.kernel.submission_id)).text
    assert "1 of 3 answers came without usage" in page
    assert client.get("/leaderboard.json").json()["rows"][0]["solved_tokens"] is None
    assert summary_check.differences() == []


def test_a_folder_and_an_archive_are_imported_alike(problem: Problem, tmp_path: Path) -> None:
    data = packed(tmp_path / "run")
    (tmp_path / "out.tar.gz").write_bytes(data)
    for name, text in files_in(data).items():
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    for path in (tmp_path / "out.tar.gz", tmp_path / "out"):
        call_command("import_submission", path, model="M", harness="agentic", verbosity=0)
    one, two = map(_told, Submission.objects.order_by("pk"))
    assert one == two
    assert Transcript.objects.count() == len(one) == 2


def _told(submission: Submission) -> list[tuple[Any, ...]]:
    made = Making.objects.filter(kernel__submission=submission).order_by("kernel__step")
    return list(made.values_list("kernel__step", *RISING, "ended"))


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "the answer", "reasoning": {"name": "reasoning_content", "text": "I think"}},
        {"content": "the answer", "reasoning_content": "I think"},
        {"content": "the answer", "reasoning": "I think"},
    ],
)
def test_what_a_model_reasoned_stands_before_what_it_said(fields: dict[str, Any]) -> None:
    ((thought, answer),) = parts_of(json.dumps({"role": "assistant", **fields}))
    assert (thought.role, thought.text) == ("assistant, reasoning", "I think")
    assert (answer.role, answer.text) == ("assistant", "the answer")


def test_a_transcript_comes_in_parts_of_64_kib(send: Send, client: Client) -> None:
    asked = [{"role": "user", "text": f"{n} " + "x" * 40_000} for n in range(3)]
    long = {"role": "tool", "text": "y" * 150_000}
    odd = ["no JSON", {"x": 1}, {"role": "assistant", "content": [{"text": "\ud800 part"}]}]
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}, 3]}
    text = "\n".join(x if isinstance(x, str) else json.dumps(x) for x in (*asked, long, *odd, call))
    parts = parts_of(text)
    assert all(sum(len(m.text) for m in part) <= PART_CHARS for part in parts)
    assert "".join(m.text for p in parts for m in p if m.role == "tool") == "y" * 150_000
    last = [message.text for message in parts[-1]][-4:]
    assert last == ["no JSON", '{"x": 1}', "? part", "→ f\n{\n\n3"]
    send(AGENTIC, made_of(LINE, **{TRANSCRIPT: zipped(*asked, long, *odd, call)}))
    address = PAGE.format(Submission.objects.get().pk)
    for number in range(1, len(parts) + 1):
        answer = client.get(f"{address}?page={number}")
        assert answer.status_code == 200
        assert ('rel="next"' in answer.text) is (number < len(parts))
    assert client.get(f"{address}?page={len(parts) + 1}").status_code == 404
    assert len(text) < MAX_TRANSCRIPT_BYTES
    assert HOSTILE not in text
