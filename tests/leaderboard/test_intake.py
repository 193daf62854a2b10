"""Handing kernels in through the API: what is taken, and that nothing refused is half-stored."""

from __future__ import annotations

import gzip
import io
import json
import stat
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from rest_framework.response import Response

from leaderboard import archives, intake, kernels
from leaderboard.models import (
    Hardware,
    Kernel,
    LanguageModel,
    Problem,
    Run,
    Source,
    Submission,
)
from leaderboard.refusal import Refusal
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api, Bells

URL = "/api/v1/submissions"
GOOD = b"def solution(tensor):\n    return tensor\n"
NAME = "1_allreduce_pytorch.py"
ONE: Mapping[str, Any] = {
    **{"model": "GPT-5.5", "vendor": "OpenAI", "harness": "zero-shot"},
    **{"problem": "allreduce", "backend": "pytorch", "source": GOOD.decode()},
}
ABOUT = {"model": "GPT-5.5", "harness": "zero-shot"}
Send = Callable[..., Any]


@pytest.fixture
def send(api: Api, owner: User, problem: Problem) -> Send:
    """Post a submission as `owner`: fields as JSON, or with an archive as a form."""
    for row in (problem, factory.make_problem(2, "allgather")):
        row.payload["tolerances"]["bfloat16"] = {"atol": 3e-2, "rtol": 2e-2}
        row.save()

    def post(fields: Mapping[str, Any], archive: bytes | None = None, **headers: str) -> Response:
        client = api(owner)
        if archive is None:
            text = json.dumps(fields)
            return client.post(URL, text, content_type="application/json", headers=headers)
        form = {**fields, "archive": SimpleUploadedFile("kernels", archive)}
        return client.post(URL, form, format="multipart", headers=headers)

    return post


def make_zip(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def make_tar(files: Mapping[str, bytes]) -> bytes:
    return _tar(*((tarfile.TarInfo(name), data) for name, data in files.items()))


def _tar(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _tar_of(kind: bytes, name: str = NAME, target: str = "/etc/passwd") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return _tar((info, b""))


def _zip_of(name: str, mode: int = 0, data: bytes = GOOD, **changes: Any) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, data, **changes)
    return out.getvalue()


def _encrypted_zip() -> bytes:
    """The flag alone, in both headers: Python cannot write encrypted archives."""
    data = bytearray(_zip_of(NAME))
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def _lying_zip() -> bytes:
    """Says of a large member that it is small."""
    data = bytearray(make_zip({NAME: b"#" * (2 << 20)}))
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.rindex(mark) + at
        data[start : start + 4] = (100).to_bytes(4, "little")
    return bytes(data)


def _stored() -> list[int]:
    return [m.objects.count() for m in (Submission, Kernel, Run, Source, LanguageModel)]


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


@pytest.mark.parametrize("pack", [make_zip, make_tar])
def test_an_archive_is_one_submission_with_its_attempts(send: Send, pack: Any) -> None:
    files = {
        NAME: GOOD,
        "2_allgather_cpp.py": GOOD + b"# two\n",
        f"attempt_2/{NAME}": GOOD + b"# again\n",
        "__MACOSX/._1_allreduce_pytorch.py": b"\0\1",
        ".DS_Store": b"\0",
    }
    answer = send(ABOUT, pack(files))
    assert answer.status_code == 201, answer.json()
    kernels_ = Kernel.objects.values_list("problem_id", "backend", "attempt")
    assert sorted(kernels_) == [(1, "pytorch", 1), (1, "pytorch", 2), (2, "cpp", 1)]
    assert Submission.objects.get().k == 2
    assert Run.objects.count() == len(answer.json()["runs"]) == 3


BAD_FIELDS: list[Any] = [
    pytest.param({"problem": "alreduce"}, "unknown_problem", "allreduce", id="unknown problem"),
    pytest.param({"problem": "88"}, "unknown_problem", "problem", id="unknown number"),
    pytest.param({"problem": "9" * 60}, "unknown_problem", "problem", id="absurd number"),
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
    assert _stored() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("name", ["model", "harness", "problem", "backend", "source"])
def test_a_missing_field_is_named(send: Send, name: str) -> None:
    answer = send({key: value for key, value in ONE.items() if key != name})
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [name]


BAD_ARCHIVES: list[Any] = [
    pytest.param(b"hello", "bad_archive", "zip", id="no archive"),
    pytest.param(make_zip({NAME: GOOD})[:60], "bad_archive", "damaged", id="cut zip"),
    pytest.param(make_tar({NAME: GOOD})[:60], "bad_archive", "damaged", id="cut tar"),
    pytest.param(gzip.compress(b"not a tar" * 200), "bad_archive", "damaged", id="gzip, no tar"),
    pytest.param(make_zip({}), "empty_archive", "no file", id="empty zip"),
    pytest.param(make_tar({}), "empty_archive", "no file", id="empty tar"),
    pytest.param(make_zip({f"../{NAME}": GOOD}), "bad_path", "path", id="zip slip"),
    pytest.param(make_tar({f"../{NAME}": GOOD}), "bad_path", "path", id="tar slip"),
    pytest.param(make_tar({f"/{NAME}": GOOD}), "bad_path", "path", id="absolute"),
    pytest.param(make_zip({f"C:{NAME}": GOOD}), "bad_path", "path", id="drive"),
    pytest.param(make_zip({f"a\\{NAME}": GOOD}), "bad_path", "path", id="backslash"),
    pytest.param(make_tar({f"a\n{NAME}": GOOD}), "bad_path", "path", id="newline in a name"),
    pytest.param(make_tar({"x" * 600: GOOD}), "bad_path", "path", id="long name"),
    pytest.param(_tar_of(tarfile.SYMTYPE), "not_a_file", "link", id="symlink"),
    pytest.param(_tar_of(tarfile.LNKTYPE), "not_a_file", "link", id="hard link"),
    pytest.param(_tar_of(tarfile.CHRTYPE), "not_a_file", "device", id="device"),
    pytest.param(_tar_of(tarfile.FIFOTYPE), "not_a_file", "device", id="fifo"),
    pytest.param(_tar_of(tarfile.SYMTYPE, ".x"), "not_a_file", "link", id="hidden symlink"),
    pytest.param(_zip_of(NAME, stat.S_IFLNK), "not_a_file", "link", id="symlink in a zip"),
    pytest.param(_encrypted_zip(), "encrypted", "encrypted", id="encrypted"),
    pytest.param(
        _zip_of(NAME, compress_type=zipfile.ZIP_LZMA), "bad_archive", "unusual", id="lzma"
    ),
    pytest.param(make_zip({NAME: b"#" * (257 << 10)}), "too_large", "KiB", id="large source"),
    pytest.param(make_zip({NAME: b"#" * (64 << 20)}), "too_large", "KiB", id="zip bomb"),
    pytest.param(make_tar({NAME: b"#" * (64 << 20)}), "too_large", "MiB", id="tar bomb"),
    pytest.param(_lying_zip(), "bad_archive", "damaged", id="a zip that lies about sizes"),
    pytest.param(
        make_zip({f"{i}.py": b"#" * (200 << 10) for i in range(50)}),
        "too_large",
        "times",
        id="ratio",
    ),
    pytest.param(
        make_tar({f"{i}.py": b"" for i in range(1001)}), "too_many_files", "1000", id="many"
    ),
    pytest.param(make_zip({"README.md": b"hi"}), "bad_file_name", "README.md", id="stray file"),
    pytest.param(make_zip({"allreduce.py": GOOD}), "bad_file_name", "1_all", id="no number"),
    pytest.param(
        make_zip({"1_allreduce_rust.py": GOOD}), "bad_file_name", "cuda", id="no such backend"
    ),
    pytest.param(
        make_zip({"1_allgather_pytorch.py": GOOD}), "name_disagrees", "allreduce", id="wrong slug"
    ),
    pytest.param(
        make_zip({"99_new_pytorch.py": GOOD}), "unknown_problem", "problems", id="no such problem"
    ),
    pytest.param(make_zip({NAME: b"\xff\xfe"}), "not_utf8", "byte 0", id="not UTF-8"),
    pytest.param(make_zip({NAME: GOOD + b"\0"}), "nul_byte", "NUL", id="NUL"),
    pytest.param(make_zip({NAME: b"x = 1\n"}), "no_entry_point", "solution", id="no entry"),
    pytest.param(
        make_zip({NAME: GOOD, "1_allreduce_cpp.py": GOOD}),
        "duplicate_kernel",
        "attempt",
        id="twice",
    ),
    pytest.param(
        make_zip({NAME: GOOD, f"a/{NAME}": GOOD}), "duplicate_kernel", "attempt", id="two folders"
    ),
    pytest.param(make_zip({f"attempt_0/{NAME}": GOOD}), "bad_attempt", "1 to 100", id="attempt 0"),
    pytest.param(
        make_zip({NAME: GOOD, "2_allgather_cuda.py": GOOD}), "no_hardware", "cuda", id="one cannot"
    ),
]


@pytest.mark.parametrize(("archive", "code", "hint"), BAD_ARCHIVES)
def test_bad_archives_are_refused_and_nothing_is_stored(
    send: Send, archive: bytes, code: str, hint: str
) -> None:
    answer = send(ABOUT, archive)
    assert answer.status_code in (400, 413), answer.content
    error = answer.json()["error"]
    assert error["code"] == code, error
    assert hint in json.dumps(error)
    assert _stored() == [0, 0, 0, 0, 0]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_in_an_archive_is_refused(send: Send) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for _ in range(2):
            archive.writestr(NAME, GOOD)
    assert send(ABOUT, out.getvalue()).json()["error"]["code"] == "duplicate_file"


def test_every_bad_file_of_an_archive_is_named(send: Send) -> None:
    answer = send(ABOUT, make_zip({NAME: b"x=1\n", "2_allgather_cpp.py": b"y=1\n"}))
    assert sorted(answer.json()["error"]["fields"]) == [NAME, "2_allgather_cpp.py"]


def test_an_archive_and_a_source_at_once_are_refused(send: Send) -> None:
    answer = send(ONE, make_zip({NAME: GOOD}))
    assert sorted(answer.json()["error"]["fields"]) == ["backend", "problem", "source"]


def test_a_pax_header_cannot_fill_the_memory(send: Send) -> None:
    """A header of 200 MiB packs into 200 KiB; it is never unpacked beyond the limit."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 200 << 20
    bomb = gzip.compress(header.tobuf() + bytes(200 << 20), 1)
    assert send(ABOUT, bomb).json()["error"]["code"] == "too_large"


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
    assert kernels.has_entry(source)


def test_the_same_request_twice_is_stored_once(send: Send) -> None:
    first = send(ONE, **{"Idempotency-Key": "k-1"})
    again = send(ONE, **{"Idempotency-Key": "k-1"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert Submission.objects.count() == Run.objects.count() == 1


def test_the_same_archive_twice_is_stored_once(send: Send) -> None:
    archive = make_zip({NAME: GOOD, "2_allgather_cpp.py": GOOD})
    first = send(ABOUT, archive, **{"Idempotency-Key": "k-1"})
    again = send(ABOUT, archive, **{"Idempotency-Key": "k-1"})
    assert first.json() == again.json()


def test_a_key_of_another_request_is_refused(send: Send) -> None:
    send(ONE, **{"Idempotency-Key": "k-1"})
    answer = send({**ONE, "world_size": 4}, **{"Idempotency-Key": "k-1"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "idempotency_key_reused")
    assert Submission.objects.count() == 1


def test_keys_of_two_users_do_not_meet(send: Send, api: Api, other: User) -> None:
    send(ONE, **{"Idempotency-Key": "k-1"})
    headers = {"Idempotency-Key": "k-1"}
    answer = api(other).post(URL, ONE, format="json", headers=headers)
    assert answer.status_code == 201
    assert Submission.objects.count() == 2


@pytest.mark.parametrize("key", ["", "k" * 201, "a\tb"])
def test_a_key_that_is_no_key_is_refused(send: Send, key: str) -> None:
    answer = send(ONE, **{"Idempotency-Key": key})
    assert answer.json()["error"]["code"] == "bad_idempotency_key"


def test_without_a_key_the_same_kernel_may_be_handed_in_again(send: Send) -> None:
    assert [send(ONE).status_code for _ in range(2)] == [201, 201]
    assert (Submission.objects.count(), Source.objects.count()) == (2, 1)


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
    assert _stored() == [0, 0, 0, 0, 0]


def test_a_failure_half_way_stores_nothing(
    problem: Problem, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(intake, "enqueue", broken)
    member = archives.Member(path=archives.PurePosixPath(NAME), data=GOOD)
    about = intake.About(model="M", harness=intake.Harness.HUMAN)
    with pytest.raises(RuntimeError):
        intake.accept(owner, about, kernels.from_members([member], 1), intake.Wish())
    assert _stored() == [0, 0, 0, 0, 0]


def test_no_kernel_at_all_is_refused(problem: Problem, owner: User) -> None:
    about = intake.About(model="M", harness=intake.Harness.HUMAN)
    with pytest.raises(Refusal, match="no kernel"):
        intake.accept(owner, about, [], intake.Wish())
