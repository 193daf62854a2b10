"""Archives of attempts that do not fit: each says what is wrong where, and nothing is stored."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from leaderboard.models import Making, Submission, Transcript
from leaderboard.submissions import archives
from tests.leaderboard.attempt_files import (
    AGENTIC,
    KERNEL,
    LINE,
    MANIFEST,
    TRANSCRIPT,
    files_in,
    made_of,
    packed,
    zipped,
)
from tests.leaderboard.uploads import GOOD, Send, make_tar, make_zip, stored

pytestmark = pytest.mark.django_db
Pack = Callable[[Mapping[str, bytes]], bytes]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"usage": {"output": 10**400}}, "output is 1000"),
        ('{"problem":1,"attempt":1,"step":1,"judge_runs":' + "9" * 5000 + "}", "not JSON"),
        ({"cost_usd": -0.5}, "cost_usd is -0.5, not a number from 0"),
        ('{"problem":1,"attempt":1,"step":1,"cost_usd":NaN}', "NaN is no number"),
        ('{"problem":1,"attempt":1,"step":1,"wall_s":1e999}', "wall_s is Infinity"),
        ({"usage": {"input": True}}, "input is true"),
        ({"usage": [1]}, "usage that is no object"),
        ({"step": None}, "has no step"),
        ({"step": 2}, "no kernel is step 2 of attempt 1 at problem 1"),
        ({"problem": 2}, "no kernel is step 1 of attempt 1 at problem 2"),
        ({"sha256": "0" * 64}, "sha256 is not that of the kernel"),
        ({"ended": "x" * 41}, "ended is"),
        ({"ended": "a\x1b[2J"}, "ended is"),
        ("[1]", "is not a JSON object"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_line_that_does_not_fit_is_named_and_nothing_is_stored(
    send: Send, line: Any, says: str
) -> None:
    own = {**LINE, **line} if isinstance(line, dict) else line
    answer = send(AGENTIC, made_of("", own))
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert message.startswith("attempts.jsonl, line 2: ")
    assert says in message
    assert stored() == [0] * 5


def said(**changes: Any) -> bytes:
    """A manifest."""
    return json.dumps({**MANIFEST, **changes}).encode()


@pytest.mark.parametrize(
    ("name", "data", "status", "says"),
    [
        (TRANSCRIPT, gzip.compress(bytes(2 << 20), mtime=0), 413, ": unpacks to more than 1 MiB"),
        (TRANSCRIPT, gzip.compress(b"\n" * 30_000, mtime=0), 413, ": has more than 20000 lines"),
        (TRANSCRIPT, b"no gzip", 400, ": is not packed by gzip"),
        (TRANSCRIPT, zipped({})[:-6], 400, ": is not packed by gzip"),
        ("transcripts/2/1.jsonl.gz", zipped({}), 400, ": there is no kernel of attempt 1"),
        ("transcripts/1/2.jsonl.gz", zipped({}), 400, ": there is no kernel of attempt 2"),
        ("manifest.json", said(format="pkb-attempts/2"), 400, ": has the format"),
        ("manifest.json", said()[:-1], 400, ": is not JSON"),
        ("manifest.json", said(budget={"usd": [1]}), 400, ": budget is"),
        ("manifest.json", said(prices_date="<b>"), 400, ": prices_date is"),
        ("x/manifest.json", said(), 400, ": is a second manifest"),
        ("attempts.jsonl", b" " * (5 << 20), 413, ": is larger than"),
    ],
)
def test_a_file_that_does_not_fit_is_named_and_nothing_is_stored(
    send: Send, name: str, data: bytes, status: int, says: str
) -> None:
    padding = {"noise.log": Random(0).randbytes(200_000)}
    answer = send(AGENTIC, made_of(LINE, **{name: data}, **padding))
    assert answer.status_code == status, answer.json()
    assert f"{name}{says}" in answer.json()["error"]["message"]
    assert stored() == [0] * 5


def test_two_lines_of_a_step_and_usage_that_falls_are_refused(send: Send, tmp_path: Path) -> None:
    answer = send(AGENTIC, made_of(LINE, LINE))
    assert answer.json()["error"]["message"] == (
        "attempts.jsonl, line 2: is of the same step as line 1."
    )
    files = files_in(packed(tmp_path))
    first, second = map(json.loads, files["attempts.jsonl"].splitlines())
    second["usage"]["output"] = 9
    files["attempts.jsonl"] = f"{json.dumps(second)}\n{json.dumps(first)}".encode()
    message = send(AGENTIC, make_zip(files)).json()["error"]["message"]
    assert message.startswith("attempts.jsonl, line 1: output_tokens is less than at an earlier")


def test_what_is_of_no_archive_of_attempts_is_not_read_and_said(send: Send) -> None:
    other = {"manifest.json": b'{"name": "a package"}', "transcripts/1/1.txt.gz": b"x"}
    assert send(AGENTIC, made_of("no JSON", **other)).status_code == 201
    assert Submission.objects.get().notes == (
        "Not read, as no manifest.json says that it is pkb-attempts/1: "
        "attempts.jsonl, transcripts/1/1.txt.gz."
    )
    assert not Making.objects.exists()


def test_the_same_request_again_stores_nothing_and_another_transcript_is_another(
    send: Send,
) -> None:
    headers = {"Idempotency-Key": "one"}
    archives = [made_of(LINE, **{TRANSCRIPT: zipped({"role": "a", "text": t})}) for t in "xxy"]
    found = [send(AGENTIC, one, **headers).status_code for one in archives]
    assert found == [201, 200, 409]
    assert Submission.objects.count() == Transcript.objects.count() == 1


@pytest.mark.parametrize("pack", [make_zip, make_tar])
def test_transcripts_have_a_limit_of_their_own(
    send: Send, monkeypatch: pytest.MonkeyPatch, pack: Pack
) -> None:
    """So a long run may be handed in whole, and as little as ever counts as source."""
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 20_000)
    monkeypatch.setattr(archives, "MAX_TRANSCRIPTS_BYTES", 60_000)
    kernels = {KERNEL.replace("attempt_1", f"attempt_{k}"): GOOD for k in (1, 2, 3)}
    said = {f"transcripts/1/{k}.jsonl.gz": _noise(19_000 + k) for k in (1, 2, 3)}
    files = {"manifest.json": json.dumps(MANIFEST).encode(), **kernels, **said}
    assert send(AGENTIC, pack(files)).status_code == 201
    packed_texts = Transcript.objects.order_by("attempt").values_list("packed", flat=True)
    assert [bytes(one) for one in packed_texts] == list(said.values())
    for name, data, says in (
        ("transcripts/1/3.jsonl.gz", _noise(25_000), "It holds transcripts of more than 0 MiB."),
        ("1_allreduce_pytorch.py", Random(0).randbytes(20_000), "It holds more than 0 MiB."),
    ):
        answer = send(AGENTIC, pack({**files, name: data}))
        assert (answer.status_code, answer.json()["error"]["message"]) == (413, says)


def _noise(size: int) -> bytes:
    """A transcript that cannot be packed any smaller."""
    return gzip.compress(Random(size).randbytes(size), mtime=0)
