"""Handing kernels in through the API: what is taken, and that nothing refused is half-stored."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from evaluator.messages.entry import has_entry
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    Hardware,
    Harness,
    Kernel,
    LanguageModel,
    Problem,
    Run,
    Submission,
)
from leaderboard.submissions import archives, intake, sources
from leaderboard.submissions.target_selection import TargetRequest
from tests.leaderboard.conftest import Bells
from tests.leaderboard.uploads import (
    ABOUT,
    GOOD,
    NAME,
    ONE,
    URL,
    Send,
    make_zip,
    stored,
)

pytestmark = pytest.mark.server


def test_one_kernel_is_stored_and_queued(
    send: Send, bells: Bells, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        answer = send(ONE)
    assert answer.status_code == 201, answer.json()
    run = Run.objects.get()
    body = answer.json()
    assert body["runs"] == [
        {"id": str(run.id), "url": f"http://testserver/runs/{run.id}", "problem": "allreduce"}
    ]
    assert body["url"] == f"http://testserver/submissions/{body['submission']}"
    assert (run.hardware_id, run.world_size, run.size) == ("cpu", 2, "tiny")
    assert (run.dtype, run.profile, run.device) == ("float32", "hardened", "cpu")
    assert run.kernel.source.text == GOOD.decode()
    assert LanguageModel.objects.get().slug == "gpt-5-5"
    assert bells == [(run.id, "cpu")]


BAD_FIELDS: list[Any] = [
    pytest.param({"problem": "alreduce"}, "unknown_problem", "allreduce", id="unknown problem"),
    pytest.param({"problem": "88"}, "unknown_problem", "problem", id="unknown number"),
    pytest.param({"problem": "9" * 60}, "unknown_problem", "problem", id="absurd number"),
    pytest.param({"step": 2}, "bad_step", "agentic", id="a step of no agent"),
    pytest.param({"source": "def other(): ..."}, "no_entry_point", "solution", id="no entry"),
    pytest.param({"source": "x = 'solution'"}, "no_entry_point", "solution", id="only named"),
    pytest.param({"source": "not python at all ("}, "no_entry_point", "solution", id="prose"),
    pytest.param({"source": "a\0solution"}, "invalid", "source", id="NUL"),
    pytest.param({"source": "solution = '\ud800'"}, "invalid", "source", id="lone surrogate"),
    pytest.param({"source": ""}, "invalid", "source", id="empty source"),
    pytest.param(
        {"source": "solution=1\n" + "#" * (256 << 10)}, "too_large", "256 KiB", id="large"
    ),
    pytest.param({"backend": "fortran"}, "invalid", "backend", id="unknown backend"),
    pytest.param({"backend": "cuda", "device": "cpu"}, "bad_device", "cuda", id="cuda on cpu"),
    pytest.param({"backend": "cuda"}, "no_hardware", "status", id="no such hardware"),
    pytest.param({"hardware": "h200x4"}, "bad_hardware", "cpu", id="unknown hardware"),
    pytest.param({"world_size": 3}, "bad_world_size", "2, 4, 8", id="odd world"),
    pytest.param({"world_size": 1}, "invalid", "world_size", id="one rank"),
    pytest.param({"world_size": "many"}, "invalid", "world_size", id="not a number"),
    pytest.param({"size": "huge"}, "bad_size", "tiny", id="unknown size"),
    pytest.param({"dtype": "float16"}, "bad_dtype", "float32", id="dtype not judged"),
    pytest.param({"dtype": "int8"}, "invalid", "dtype", id="unknown dtype"),
    pytest.param({"profile": "soft"}, "invalid", "profile", id="unknown profile"),
    pytest.param({"harness": "guess"}, "invalid", "harness", id="unknown harness"),
    pytest.param({"harness": "a\ud800"}, "invalid", "harness", id="surrogate in a choice"),
    pytest.param({"visibility": "secret"}, "invalid", "visibility", id="unknown visibility"),
    pytest.param({"attempt": 0}, "invalid", "attempt", id="attempt 0"),
    pytest.param({"attempt": 101}, "invalid", "attempt", id="attempt 101"),
    pytest.param({"step_budget": 20}, "bad_step_budget", "agentic", id="steps of one shot"),
    pytest.param({"model": ""}, "invalid", "model", id="no model"),
    pytest.param({"model": "模型"}, "bad_model_name", "Latin", id="no Latin letter"),
    pytest.param({"model": "x" * 81}, "invalid", "model", id="long model"),
    pytest.param({"model": "a\0b"}, "invalid", "model", id="NUL in the model"),
    pytest.param({"model": ["a"]}, "invalid", "model", id="model is a list"),
    pytest.param({"wolrd_size": 4}, "invalid", "wolrd_size", id="misspelt field"),
    pytest.param({"\ud800": 4}, "invalid", "Unknown", id="surrogate field"),
]


@pytest.mark.parametrize(("change", "code", "hint"), BAD_FIELDS)
def test_bad_fields_are_refused_and_nothing_is_stored(
    send: Send, change: dict[str, Any], code: str, hint: str
) -> None:
    answer = send({**ONE, **change})
    assert answer.status_code in (400, 413), answer.content
    error = answer.json()["error"]
    assert error["code"] == code, error
    assert hint in json.dumps(error)
    assert error["message"]
    assert error["fix"]
    assert stored() == [0, 0, 0, 0, 0]


def test_one_kernel_may_be_a_step_of_an_agents_attempt(send: Send) -> None:
    assert send({**ONE, "harness": "agentic", "attempt": 2, "step": 3}).status_code == 201
    assert Kernel.objects.values_list("attempt", "step").get() == (2, 3)


def test_a_source_in_a_form_is_refused(submitter: APIClient, problem: Problem) -> None:
    answer = submitter.post(URL, ONE, format="multipart")
    assert "archive" in answer.json()["error"]["fields"]
    assert stored() == [0, 0, 0, 0, 0]


def test_a_form_of_too_many_parts_is_refused(submitter: APIClient, problem: Problem) -> None:
    files = {f"f{i}": SimpleUploadedFile(f"f{i}", b"x") for i in range(101)}
    answer = submitter.post(URL, {**ABOUT, **files}, format="multipart")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "too_many_files")


@pytest.mark.parametrize("name", ["model", "harness", "problem", "backend", "source"])
def test_a_missing_field_is_named(send: Send, name: str) -> None:
    answer = send({key: value for key, value in ONE.items() if key != name})
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [name]


@pytest.mark.parametrize(
    "source",
    [
        "def solution(x): return x",
        "async def solution(x): return x",
        "class solution: ...",
        "solution = lambda x: x",
        "if True:\n    solution: object = print",
        "from elsewhere import run as solution",
        "from elsewhere import *",
        "def solution(x) return x",
        "solution = " + "(" * 5000 + ")" * 5000,
        "solution = " + "-" * 50_000 + "1",
        "solution = 1" + "+1" * 50_000,
        "solution = x" + ".x" * 50_000,
        "\ufeffdef solution(x): return x",
    ],
)
def test_an_entry_point_is_found_in_whatever_form(source: str) -> None:
    assert has_entry(source)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "x = solution",
        "# solution",
        "import solution.y",
        "def other(:",
        "\x0c",
        "x" * 9_000 + "(",
    ],
)
def test_a_source_that_defines_nothing_has_no_entry_point(source: str) -> None:
    assert not has_entry(source)


@pytest.mark.parametrize("cost", [0, 12.5, 1e9])
def test_a_cost_is_kept_as_it_was_told(send: Send, cost: float) -> None:
    assert send({**ONE, "cost_usd": cost}).status_code == 201
    assert Submission.objects.get().cost_usd == cost


@pytest.mark.parametrize("cost", [-1, 1e10, "nan", "inf", "much"])
def test_a_cost_that_is_none_is_refused(send: Send, cost: float | str) -> None:
    answer = send({**ONE, "cost_usd": cost})
    assert answer.status_code == 400
    assert "cost_usd" in answer.json()["error"]["fields"]
    assert not Submission.objects.exists()


LINK = "https://example.org/a(b)?c=d&e=%20#f"


def test_a_link_is_kept_and_leads_there(send: Send, client: Client) -> None:
    assert send({**ONE, "link": LINK}).status_code == 201
    made = Submission.objects.get()
    assert made.link == LINK
    page = client.get(made.get_absolute_url()).content.decode()
    assert f'<a href="{LINK.replace("&", "&amp;")}" rel="nofollow ugc noopener">example' in page


@pytest.mark.parametrize(
    "link",
    [
        *(
            "javascript:alert(1)",
            "http://example.org",
            "HTTPS://a.org",
            "https://",
            "//example.org",
            "x",
        ),
        *("https://example.org@evil.org", "https://[::1", "https://ex ample.org", "https://ä.org"),
        *('https://example.org/"onclick', "https://example.org/<b>", "https://a\u202e.org"),
        f"https://example.org/{'x' * 200}",
    ],
)
def test_a_link_that_is_none_is_refused(send: Send, link: str) -> None:
    answer = send({**ONE, "link": link})
    assert answer.status_code == 400
    assert "link" in answer.json()["error"]["fields"]
    assert not Submission.objects.exists()


def test_nobody_hands_in_kernels_of_a_baseline(send: Send) -> None:
    LanguageModel.objects.create(slug="m", name="M", is_baseline=True)
    assert send({**ONE, "model": "M"}).json()["error"]["code"] == "baseline_model"
    assert not Submission.objects.exists()


def test_a_submission_does_not_change_what_is_known_of_a_model(send: Send) -> None:
    send(ONE)
    assert send({**ONE, "vendor": "Somebody"}).json()["error"]["code"] == "other_vendor"
    assert send({**ONE, "model": "gpt-5.5", "vendor": "openai"}).status_code == 201
    assert LanguageModel.objects.get().name == "GPT-5.5"


def test_the_smallest_hardware_that_fits_is_chosen(send: Send) -> None:
    for slug, count in (("h100x8", 8), ("h200x4", 4)):
        Hardware.objects.create(slug=slug, title=slug, device="cuda", max_world_size=count)
    assert send({**ONE, "backend": "triton"}).status_code == 201
    run = Run.objects.get()
    assert (run.hardware_id, run.world_size, run.size) == ("h200x4", 4, "standard")


def test_a_folder_is_imported_once(problem: Problem, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(GOOD)
    for _ in range(2):
        call_command("import_submission", tmp_path, "--model=M", "--harness=human")
    assert (Submission.objects.count(), Run.objects.count()) == (1, 1)


def test_a_folder_with_a_bad_file_is_refused(problem: Problem, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"\xff")
    with pytest.raises(CommandError, match="UTF-8"):
        call_command("import_submission", tmp_path, "--model=M", "--harness=human")
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).symlink_to("/etc/hostname")
    with pytest.raises(CommandError, match="link"):
        call_command("import_submission", tmp_path, "--model=M", "--harness=human")
    assert stored() == [0, 0, 0, 0, 0]


def test_a_failure_half_way_stores_nothing(
    problem: Problem, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(intake, "enqueue", broken)
    member = archives.Member(path=PurePosixPath(NAME), content=GOOD)
    metadata = intake.Metadata(model="M", harness=Harness.HUMAN)
    kernels = sources.handed_in(archives.Unpacked(members=[member]), 1)
    with pytest.raises(RuntimeError):
        intake.accept(owner, metadata, kernels, TargetRequest())
    assert stored() == [0, 0, 0, 0, 0]


def test_no_kernel_at_all_is_refused(problem: Problem, owner: User) -> None:
    metadata = intake.Metadata(model="M", harness=Harness.HUMAN)
    with pytest.raises(RequestError, match="no kernel"):
        intake.accept(owner, metadata, sources.HandedIn(candidates=[]), TargetRequest())


def faults_of(answer: Any) -> dict[str, str]:
    assert answer.status_code == 400, answer.content
    found: dict[str, str] = answer.json()["error"]["fields"]
    return found


def test_all_faults_of_a_request_are_named_at_once(send: Send) -> None:
    wrong = {
        **{"problem": "allreduced", "source": "x = 1\n", "cost_usd": -1, "link": "ftp://x"},
        **{"licence": "MIT", "withholds_source": True, "colour": "red", "size_": "x"},
    }
    found = faults_of(send({**ONE, **wrong}))
    assert found.keys() == {"problem", "source", "cost_usd", "link", "licence", "colour", "size_"}
    shaped = {"world_size": 3, "dtype": "float16", "size": "huge", "step_budget": 4}
    assert faults_of(send({**ONE, **shaped})).keys() >= {"world_size", "size", "step_budget"}
    assert Submission.objects.count() == 0


def test_all_faults_of_an_archive_are_named_at_once(send: Send) -> None:
    files = {
        NAME: GOOD,
        "notes.py": GOOD,
        "2_allreduce_pytorch.py": GOOD,
        "99_nothing_cuda.py": GOOD,
        "1_allreduce_cuda.py": b"\xff",
    }
    found = faults_of(send({"harness": "human", "model": "!!"}, make_zip(files)))
    assert found.keys() == {*files, "model"} - {NAME}


def test_a_part_of_a_refused_archive_is_not_an_earlier_request(send: Send) -> None:
    key = {"Idempotency-Key": "one"}
    about = {"model": "A", "harness": "human"}
    assert send(about, make_zip({NAME: GOOD}), **key).status_code == 201
    again = send(about, make_zip({NAME: GOOD, "notes.py": GOOD}), **key)
    assert faults_of(again).keys() == {"notes.py"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": "x = 1"}, "source"),
        ({"source": "\0"}, "source"),
        ({"attempt": 0}, "attempt"),
        ({"problem": "x"}, "problem"),
        ({"step": 2}, "step"),
        ({"team": "nobody"}, "team"),
        ({"model": "\u202e"}, "model"),
    ],
)
def test_every_error_of_a_request_names_its_field(
    send: Send, changes: dict[str, Any], field: str
) -> None:
    assert field in faults_of(send({**ONE, **changes}))
