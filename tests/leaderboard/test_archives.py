"""Archives: what is read of them, and what is refused."""

from __future__ import annotations

import gzip
import io
import json
import stat
import tarfile
import zipfile
from random import Random
from typing import Any

import pytest

from leaderboard.models import (
    Kernel,
    LanguageModel,
    Run,
    Submission,
)
from leaderboard.submissions import archives
from tests.leaderboard.uploads import (
    ABOUT,
    GOOD,
    NAME,
    ONE,
    Send,
    make_tar,
    make_zip,
    stored,
    tar_of_entries,
)


def _tar_of(kind: bytes, name: str = NAME, target: str = "/etc/passwd") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return tar_of_entries((info, b""))


def _zip_of(name: str, mode: int = 0, data: bytes = GOOD, **changes: Any) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, data, **changes)
    return out.getvalue()


def _tar_with_a_long_header() -> bytes:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, archives.MAX_HEADER_BYTES + 1
    return gzip.compress(header.tobuf() + bytes(header.size) + bytes(1023))


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


@pytest.mark.parametrize("pack", [make_zip, make_tar])
def test_what_lies_beside_kernels_is_passed_over(send: Send, pack: Any) -> None:
    files = {
        NAME: GOOD,
        "meta.json": b"{" * (300 << 10),
        "prompts/ab.md": b"\xff",
        "logs/run.TXT": b"",
        "transcripts/1/1.jsonl.gz": b"\0",
    }
    assert send(ABOUT, pack(files)).status_code == 201
    assert Kernel.objects.get().source.held_text.encode() == GOOD


def test_one_bad_file_is_that_kernels_verdict(send: Send) -> None:
    """The judge says so of each: nothing is refused for it, and no answer is left out."""
    files = {NAME: GOOD, "2_allgather_pytorch.py": b"", f"attempt_2/{NAME}": b"def solution(:"}
    assert send(ABOUT, make_zip(files)).status_code == 201
    assert Run.objects.count() == 3
    assert Kernel.objects.get(problem_id=2).source.held_text == ""


def test_steps_of_an_attempt_are_files_of_its_folder(send: Send) -> None:
    steps = {
        f"kernels/1_allreduce/attempt_{attempt}/step_{step:02}_pytorch.py": GOOD + b"# %d" % step
        for attempt, step in ((1, 1), (1, 2), (1, 10), (2, 1))
    }
    about = {**ABOUT, "harness": "agentic", "step_budget": 10}
    assert send(about, make_tar(steps)).status_code == 201
    stored_steps = Kernel.objects.values_list("problem_id", "attempt", "step")
    assert sorted(stored_steps) == [(1, 1, 1), (1, 1, 2), (1, 1, 10), (1, 2, 1)]
    assert Kernel.objects.get(step=10).source.held_text.endswith("# 10")
    assert Run.objects.count() == 4
    answer = send({**about, "step_budget": 9}, make_tar(steps))
    assert answer.json()["error"]["fields"] == {"step_budget": "there is a step 10"}


BAD_ARCHIVES: list[Any] = [
    pytest.param(b"hello", "bad_archive", "zip", id="no archive"),
    pytest.param(make_zip({NAME: GOOD})[:60], "bad_archive", "damaged", id="cut zip"),
    pytest.param(make_tar({NAME: GOOD})[:60], "bad_archive", "damaged", id="cut tar"),
    pytest.param(gzip.compress(b"not a tar" * 200), "bad_archive", "damaged", id="gzip, no tar"),
    pytest.param(make_zip({}), "empty_archive", "no kernel", id="empty zip"),
    pytest.param(make_tar({}), "empty_archive", "no kernel", id="empty tar"),
    pytest.param(make_zip({f"../{NAME}": GOOD}), "bad_path", "path", id="zip slip"),
    pytest.param(make_tar({f"../{NAME}": GOOD}), "bad_path", "path", id="tar slip"),
    pytest.param(make_tar({f"/{NAME}": GOOD}), "bad_path", "path", id="absolute"),
    pytest.param(make_zip({f"C:{NAME}": GOOD}), "bad_path", "path", id="drive"),
    pytest.param(make_tar({f"a\n{NAME}": GOOD}), "bad_path", "path", id="newline in a name"),
    pytest.param(make_tar({"x" * 600: GOOD}), "bad_path", "path", id="long name"),
    pytest.param(_tar_of(tarfile.SYMTYPE), "not_a_file", "link", id="symlink"),
    pytest.param(_tar_of(tarfile.LNKTYPE), "not_a_file", "link", id="hard link"),
    pytest.param(_tar_of(tarfile.CHRTYPE), "not_a_file", "device", id="device"),
    pytest.param(_tar_of(tarfile.FIFOTYPE), "not_a_file", "device", id="fifo"),
    pytest.param(_tar_of(tarfile.SYMTYPE, ".x"), "empty_archive", "no kernel", id="hidden link"),
    pytest.param(_zip_of(NAME, stat.S_IFLNK), "not_a_file", "link", id="symlink in a zip"),
    pytest.param(_encrypted_zip(), "encrypted", "encrypted", id="encrypted"),
    pytest.param(
        _zip_of(NAME, compress_type=zipfile.ZIP_LZMA), "bad_archive", "unusual", id="lzma"
    ),
    pytest.param(make_zip({NAME: b"#" * (257 << 10)}), "too_large", "KiB", id="large source"),
    pytest.param(make_zip({NAME: b"#" * (64 << 20)}), "too_large", "KiB", id="zip bomb"),
    pytest.param(make_tar({NAME: b"#" * (64 << 20)}), "too_large", "times", id="tar bomb"),
    pytest.param(
        _tar_with_a_long_header(), "too_large", "64 KiB", id="a header longer than a name"
    ),
    pytest.param(_lying_zip(), "bad_archive", "damaged", id="a zip that lies about sizes"),
    pytest.param(
        make_zip({f"{i}.py": b"#" * (200 << 10) for i in range(50)}),
        "too_large",
        "times",
        id="ratio",
    ),
    pytest.param(
        make_zip({f"{i}.py": b"" for i in range(5001)}),
        "too_many_files",
        "5000",
        id="many",
    ),
    pytest.param(make_zip({"kernel.cu": b"hi"}), "empty_archive", "no kernel", id="no Python"),
    pytest.param(make_zip({"README.md": b"hi"}), "empty_archive", "no kernel", id="a note alone"),
    pytest.param(make_zip({"step_01_cpp.py": GOOD}), "bad_file_name", "step_01", id="of nothing"),
    pytest.param(
        make_zip({f"1_allreduce/step_0{n}_pytorch.py": GOOD for n in (0, 1)}),
        "bad_step",
        "1 to 10000",
        id="step 0",
    ),
    pytest.param(
        make_zip({"1_allreduce/step_02_pytorch.py": GOOD}), "bad_step", "agentic", id="no agent"
    ),
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


def test_the_remedy_for_a_large_kernel_is_a_smaller_one(send: Send) -> None:
    archive = make_zip({NAME: GOOD + b"#" * (400 << 10)})
    answer = send(ABOUT, archive)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (413, "too_large")
    assert error["message"] == f"{NAME} is larger than 256 KiB."
    assert error["fix"] == "Remove what the kernel does not need: a file has at most 256 KiB."


@pytest.mark.parametrize(("archive", "code", "hint"), BAD_ARCHIVES)
def test_bad_archives_are_refused_and_nothing_is_stored(
    send: Send, archive: bytes, code: str, hint: str
) -> None:
    answer = send(ABOUT, archive)
    assert answer.status_code in (400, 413), answer.content
    error = answer.json()["error"]
    assert error["code"] == code, error
    assert hint in json.dumps(error)
    assert stored() == [0, 0, 0, 0, 0]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_in_an_archive_is_refused(send: Send) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for _ in range(2):
            archive.writestr(NAME, GOOD)
    assert send(ABOUT, out.getvalue()).json()["error"]["code"] == "duplicate_file"


def test_every_bad_file_of_an_archive_is_named(send: Send) -> None:
    answer = send(ABOUT, make_zip({NAME: b"\xff", "2_allgather_cpp.py": b"\0"}))
    assert sorted(answer.json()["error"]["fields"]) == [NAME, "2_allgather_cpp.py"]


def test_faults_of_the_archive_come_with_all_others(send: Send) -> None:
    LanguageModel.objects.create(slug="m", name="M", is_baseline=True, vendor="V")
    entries = [(tarfile.TarInfo(name), GOOD) for name in (f"../{NAME}", NAME, "2_x.py")]
    link = tarfile.TarInfo("3_reduce_cpp.py")
    link.type, link.linkname = tarfile.SYMTYPE, NAME
    entries += [(link, b""), (tarfile.TarInfo("4_gather_cpp.py"), b"#" * (257 << 10))]
    entries.append((tarfile.TarInfo("99_new_cpp.py"), GOOD))
    about = {**ABOUT, "model": "M", "vendor": "W", "team": "nobody", "link": "x"}
    answer = send(about, tar_of_entries(*entries))
    assert answer.status_code == 413
    assert sorted(answer.json()["error"]["fields"]) == [
        *(f"../{NAME}", "2_x.py", "3_reduce_cpp.py", "4_gather_cpp.py", "99_new_cpp.py"),
        *("link", "model", "team", "vendor"),
    ]
    assert stored() == [0, 0, 0, 0, 1]


def test_an_archive_and_a_source_at_once_are_refused(send: Send) -> None:
    answer = send(ONE, make_zip({NAME: GOOD}))
    assert sorted(answer.json()["error"]["fields"]) == ["backend", "problem", "source"]


def test_a_pax_header_cannot_fill_the_memory(send: Send) -> None:
    """A header of 200 MiB packs into 200 KiB; it is never unpacked beyond the limit."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 200 << 20
    bomb = gzip.compress(header.tobuf() + bytes(200 << 20), 1)
    assert send(ABOUT, bomb).json()["error"]["code"] == "too_large"


def test_what_is_read_of_a_tar_has_a_limit_together(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the ratio, which incompressible files keep to."""
    files = {NAME: GOOD, "run.log": Random(0).randbytes(300_000)}
    monkeypatch.setattr(archives, "MAX_TAR_BYTES", 200_000)
    assert send(ABOUT, make_tar(files)).json()["error"]["code"] == "too_large"
    assert send(ABOUT, make_zip(files)).status_code == 201  # of which the log is never read


def test_a_form_with_an_archive_may_be_larger_than_what_is_kept_in_memory(
    send: Send, settings: Any
) -> None:
    settings.PKB_MAX_BODY_BYTES, settings.PKB_MAX_ARCHIVE_BYTES = 100, 5000
    assert send(ABOUT, make_zip({NAME: GOOD})).status_code == 201
    assert send(ABOUT, bytes(5000)).json()["error"]["code"] == "too_large"
    assert send(ONE).json()["error"]["code"] == "too_large"  # JSON
