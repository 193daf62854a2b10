"""The client is patient with a site that is busy, and careful with one that is hostile."""

from __future__ import annotations

import email.utils
import json
import time
from pathlib import Path

import pytest

from evaluator.client import transport, watching
from evaluator.client.sources import folder_members
from tests.evaluator.client.conftest import Pkb
from tests.evaluator.client.scripted import RUN, Answer, refusal, run, site, write

Output = pytest.CaptureFixture[str]
EMPTY = Answer(value=[])


def test_a_busy_site_is_asked_again_when_it_says(pkb: Pkb, waits: list[float]) -> None:
    soon = email.utils.formatdate(time.time() + 31, usegmt=True)
    busy = [refusal(429, Retry_After="7"), refusal(503), Answer(status=502, raw=b"<html>")]
    with site(*busy, refusal(503, Retry_After=soon), EMPTY) as asked:
        assert pkb("problems", "--site", asked.url) == 0
    assert len(asked.requests) == 5
    assert waits[:3] == [7, 2, 4]
    assert waits[3] == pytest.approx(31, abs=3)


def test_what_would_take_too_long_is_told_at_once(
    pkb: Pkb, waits: list[float], capsys: Output
) -> None:
    with site(refusal(429, "Slowly.", "Wait.", Retry_After="3000")) as asked:
        assert pkb("problems", "--site", asked.url) == 3
    assert len(asked.requests) == 1
    assert not waits
    assert capsys.readouterr().err.startswith("pkb: Slowly.\n  Wait.\n  model: needed\n")


@pytest.mark.parametrize(
    ("answer", "status", "requests"),
    [
        (refusal(400), 3, 1),
        (refusal(401), 3, 1),
        (Answer(status=404, raw=b"<h1>Not here</h1>"), 3, 1),
        (refusal(500), 4, 1),
        (refusal(503), 4, 5),
        (Answer(raw=b"<html>"), 4, 1),
        (Answer(raw=b"[" * 100_000), 4, 1),
        (Answer(value={"unknown": "shape"}), 4, 1),
        (Answer(value=[], is_cut=True), 4, 5),
    ],
)
def test_each_way_to_fail_has_its_exit_status(
    *, pkb: Pkb, waits: list[float], capsys: Output, answer: Answer, status: int, requests: int
) -> None:
    with site(answer) as asked:
        assert pkb("problems", "--site", asked.url, "--json") == status
    assert json.loads(capsys.readouterr().out)["error"]["message"]
    assert len(asked.requests) == requests
    assert len(waits) == requests - 1


def test_no_site_is_no_answer(pkb: Pkb, waits: list[float], capsys: Output) -> None:
    with site(EMPTY) as asked:
        pass
    assert pkb("problems", "--site", asked.url, "--json") == 4
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "no_answer"


def test_an_answer_without_end_is_cut(
    pkb: Pkb, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(transport, "MAX_BYTES", 1 << 20)
    with site(Answer(raw=b" " * (2 << 20))) as asked:
        assert pkb("problems", "--site", asked.url) == 4
    assert "larger than 1 MiB" in capsys.readouterr().err


def test_a_token_goes_to_no_other_site(
    pkb: Pkb, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("PKB_TOKEN", "pkb_secret_of_mine")
    with site(EMPTY) as other:
        away = Answer(status=302, headers={"Location": f"{other.url}/api/v1/problems"})
        with site(away) as asked:
            assert pkb("problems", "--site", asked.url) == 4
    assert asked.requests[0][2]["Authorization"] == "Bearer pkb_secret_of_mine"
    assert not other.requests
    assert f"sends elsewhere: {other.url}" in capsys.readouterr().err


def test_a_stored_token_belongs_to_its_site(
    pkb: Pkb, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    with site(Answer(value={"software_version": "1"})) as own, site(EMPTY) as other:
        monkeypatch.setenv("PKB_TOKEN", "pkb_secret_of_mine")
        assert pkb("login", own.url) == 0
        monkeypatch.delenv("PKB_TOKEN")
        assert pkb("problems", "--site", other.url) == 0
        assert pkb("report", RUN) == 0
    assert (config / "token").stat().st_mode & 0o777 == 0o600
    assert "Authorization" not in other.requests[0][2]
    assert own.requests[1][2]["Authorization"] == "Bearer pkb_secret_of_mine"
    assert "secret" not in "".join(capsys.readouterr())


def test_a_refused_token_is_named_by_its_file_and_left_out(pkb: Pkb, capsys: Output) -> None:
    good = Answer(value={"software_version": "1"})
    line = {"kernel": "0" * 64, "id": RUN, "problem": "1", "verdict": "ok", "message": ""}
    with site(good, refusal(401), Answer(value=line)) as asked:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PKB_TOKEN", "pkb_secret_of_mine")
            assert pkb("login", asked.url) == 0
        assert pkb("watch", RUN) == 4
    sent = [headers.get("Authorization") for _, _, headers in asked.requests]
    assert sent == ["Bearer pkb_secret_of_mine"] * 2 + [None]
    told = capsys.readouterr().err
    assert told.count("refuses the token of") == 1
    assert "pkb/token. `pkb login http" in told


def test_without_a_command_the_help_is_printed(pkb: Pkb, capsys: Output) -> None:
    assert pkb() == 0
    assert capsys.readouterr().out.startswith("usage: pkb")


def test_a_published_row_is_marked(pkb: Pkb, capsys: Output) -> None:
    row = {"model": "M", "place": 1}
    rows = [row, {**row, "claimed": True}, {**row, "baseline": True}]
    with site(Answer(value={"setting": None, "rows": rows})) as asked:
        assert pkb("board", "--site", asked.url) == 0
    kinds = [line.split()[3] for line in capsys.readouterr().out.splitlines()[2:]]
    assert kinds == ["-", "published", "baseline"]


@pytest.mark.parametrize("token", ["two words", "a\nX-Other: b", "\x1b[2J"])
def test_what_is_no_token_is_neither_sent_nor_shown(
    pkb: Pkb, monkeypatch: pytest.MonkeyPatch, capsys: Output, token: str
) -> None:
    monkeypatch.setenv("PKB_TOKEN", token)
    with site(EMPTY) as asked:
        assert pkb("problems", "--site", asked.url) == 2
    assert not asked.requests
    assert token not in "".join(capsys.readouterr())


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_text_of_a_site_steers_a_terminal(pkb: Pkb, capsys: Output, form: list[str]) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202e\x7fdone"
    with site(refusal(400, hostile, hostile)) as asked:
        assert pkb("watch", RUN, "--site", asked.url, *form) == 3
    with site(Answer(value=run(message=hostile, cause=hostile, url=hostile))) as asked:
        assert pkb("watch", RUN, "--site", asked.url, *form) == 0
    with site(Answer(value={"logs": [{"rank": 0, "text": hostile}]})) as asked:
        assert pkb("logs", RUN, "--site", asked.url, *form) == 0
    said = "".join(capsys.readouterr())
    assert not [char for char in said if char != "\n" and not char.isprintable()]
    assert "owned" in said


def test_a_watch_goes_on_after_a_lost_connection(
    pkb: Pkb, waits: list[float], capsys: Output
) -> None:
    queued = Answer(value=run(status="queued", verdict=None), headers={"ETag": 'W/"1"'})
    lost = Answer(value=run(), is_cut=True)
    busy = refusal(429, Retry_After="9")
    with site(queued, Answer(status=304), lost, busy, Answer(value=run())) as asked:
        assert pkb("watch", f"http://elsewhere/runs/{RUN}", "--site", asked.url) == 0
    assert [headers.get("If-None-Match") for _, _, headers in asked.requests[:2]] == [None, 'W/"1"']
    assert "queued, place 1" in capsys.readouterr().err
    assert waits == [2, 2, 4, 9]


def test_a_watch_ends_where_the_site_stays_away(
    pkb: Pkb, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "SILENCE_S", -1.0)
    with site(refusal(503)) as asked:
        assert pkb("watch", RUN, "--site", asked.url) == 4


@pytest.mark.parametrize("status", ["failed", "cancelled", "done"])
def test_a_verdict_that_is_not_ok_has_its_status(pkb: Pkb, status: str) -> None:
    with site(Answer(value=run(status=status, verdict="timeout"))) as asked:
        assert pkb("watch", RUN, "--site", asked.url) == 1


def test_a_submission_is_sent_again_under_the_same_key(
    pkb: Pkb, waits: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PKB_TOKEN", "t")
    accepted = Answer(value={"submission": 1, "url": "u", "runs": []}, status=201)
    folder = write(tmp_path / "kernels", {"1_allreduce_cuda.py": "", "run.log": "a key"})
    with site(refusal(503), accepted) as asked:
        for _ in range(2):
            words = ("submit", folder, "--model", "M", "--harness", "human", "--site", asked.url)
            assert pkb(*words) == 0
        assert pkb(*words, "--notes", "other") == 0
    keys = [headers["Idempotency-Key"] for _, _, headers in asked.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("2_allreduce_cuda.py",), "There is no problem 2_allreduce"),
        (("kernel.py",), "does not say its problem"),
        (("a", "--problem", "1"), "are of one file"),
        (("b",), "has no kernel"),
        (("nowhere.zip",), "No such file"),
    ],
)
def test_nothing_is_sent_of_a_wrong_call(
    *,
    pkb: Pkb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
    words: tuple[str, ...],
    says: str,
) -> None:
    files = ("2_allreduce_cuda.py", "kernel.py", "a/1_allreduce_cuda.py", "b/run.log")
    monkeypatch.chdir(write(tmp_path, dict.fromkeys(files, "")))
    monkeypatch.setenv("PKB_TOKEN", "t")
    with site(EMPTY) as asked:
        about = ("--model", "M", "--harness", "human", "--site", asked.url)
        assert pkb("submit", *words, *about) == 2
    assert not asked.requests
    assert says in capsys.readouterr().err


def test_of_a_folder_only_kernels_and_attempts_are_sent(tmp_path: Path) -> None:
    files = {"1_allreduce_cuda.py": "", "manifest.json": "{}", "attempts.jsonl": "", "run.log": ""}
    folder = write(tmp_path / "of", files)
    assert [each.path.name for each in folder_members(folder)] == ["1_allreduce_cuda.py"]
    write(folder, {"manifest.json": '{"format": "pkb-attempts/1"}', "transcripts/1/1.jsonl.gz": ""})
    assert sorted(str(each.path) for each in folder_members(folder)) == [
        *("of/1_allreduce_cuda.py", "of/attempts.jsonl", "of/manifest.json"),
        "of/transcripts/1/1.jsonl.gz",
    ]
