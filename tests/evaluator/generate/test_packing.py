"""What `pack` writes: pkb-attempts/1, the same bytes each time, whatever a model said."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from evaluator.client.attempts import MAX_TRANSCRIPT_BYTES
from evaluator.generate.exchange import (
    Ask,
    Failed,
    Misconfigured,
    Rejected,
    Reply,
    Unanswered,
    Usage,
)
from evaluator.generate.packing import archive
from evaluator.generate.plan import attempts
from evaluator.generate.running import purse_of
from tests.evaluator.generate.scripted import (
    FENCED,
    KERNEL,
    ScriptedJudge,
    ScriptedModel,
    go_on,
    lay_out,
    plan,
    reply,
)

HOSTILE = "<script>alert(1)</script>\x1b[2J\x00\u202e"


def _packed(folder: Path, *words: str, answer: Reply | Exception) -> dict[str, bytes]:
    """The files of the archive of a run in which every ask gets this answer."""

    def script(_: object) -> Reply:
        if isinstance(answer, Exception):
            raise answer
        return answer

    own = plan(*words)
    place = lay_out(folder, own)
    go_on(place, own, ScriptedModel(script=script), ScriptedJudge() if own.is_judged else None)
    return _files(archive(place, own))


def _files(data: bytes) -> dict[str, bytes]:
    files = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            assert member.isfile()
            assert not member.name.startswith("/")
            assert ".." not in member.name
            file = tar.extractfile(member)
            assert file is not None
            files[member.name] = file.read()
    return files


def _rows(files: dict[str, bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files["attempts.jsonl"].splitlines()]


def _transcript(files: dict[str, bytes], name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(files[name]).splitlines()]


def test_the_archive_holds_what_its_format_says(tmp_path: Path) -> None:
    words = ("--harness", "repeated", "--samples", "2", "--problems", "13,1", "--price", "1,1,2")
    files = _packed(tmp_path, *words, answer=reply(FENCED))
    manifest = json.loads(files["manifest.json"])
    assert manifest["format"] == "pkb-attempts/1"
    assert manifest["recipe"] == "zero-shot"
    assert manifest["harness"] == "repeated"
    assert manifest["prices"]["output"] == 2.0
    kernels = sorted(name for name in files if name.startswith("kernels/"))
    assert kernels == [
        "kernels/13_gemm_allreduce/attempt_1/step_01_pytorch.py",
        "kernels/13_gemm_allreduce/attempt_2/step_01_pytorch.py",
        "kernels/1_allreduce/attempt_1/step_01_pytorch.py",
        "kernels/1_allreduce/attempt_2/step_01_pytorch.py",
    ]
    rows = _rows(files)
    assert [(row["problem"], row["attempt"]) for row in rows] == [(1, 1), (1, 2), (13, 1), (13, 2)]
    assert all(row["ended"] == "answered" and row["step"] == 1 for row in rows)
    assert rows[0]["sha256"] == hashlib.sha256(KERNEL.encode()).hexdigest()
    assert rows[0]["cost_usd"] == pytest.approx((90 + 2 * 10) / 1e6)
    assert rows[0]["judge_runs"] == 1
    prompt = files[f"prompts/{rows[-1]['prompt_sha256']}.md"]
    assert hashlib.sha256(prompt).hexdigest() == rows[-1]["prompt_sha256"]
    said = _transcript(files, "transcripts/13/2.jsonl.gz")
    assert [message["role"] for message in said] == ["system", "user", "assistant"]
    assert said[1]["text"] in prompt.decode()


def test_a_line_a_step_each_with_what_was_used_by_then(tmp_path: Path) -> None:
    calls = [("write", json.dumps({"source": f"# {at}\n"})) for at in range(2)]
    files = _packed(
        tmp_path,
        "--harness",
        "agentic",
        "--problems",
        "1",
        "--steps",
        "2",
        answer=reply("", *calls),
    )
    first, second = _rows(files)
    assert (first["step"], first["ended"], first["answers"]) == (1, None, 1)
    assert (second["step"], second["ended"], second["answers"]) == (2, "steps", 8)
    assert second["usage"]["input"] == 8 * 90


@pytest.mark.parametrize(
    ("answer", "ended", "has_kernel"),
    [
        (reply(FENCED), "answered", True),
        (reply(""), "no_answer", False),
        (reply("I do not know."), "no_answer", False),
        (reply(FENCED[:-8], finish="length"), "cut_off", False),
        (reply(FENCED + "And", finish="length"), "cut_off", True),
        (reply("No.", refusal="I cannot"), "refused", False),
        (reply("", finish="content_filter"), "refused", False),
        (Failed("refused", "policy"), "refused", False),
        (Failed("too_long", "100 MB"), "too_long", False),
    ],
)
def test_an_attempt_without_a_kernel_counts_with_its_reason(
    tmp_path: Path, answer: Reply | Exception, ended: str, has_kernel: bool
) -> None:
    files = _packed(tmp_path, "--problems", "1", "--judge", "none", answer=answer)
    (row,) = _rows(files)
    assert row["ended"] == ended
    assert row["finish"] == (answer.finish if isinstance(answer, Reply) else None)
    (kernel,) = (data for name, data in files.items() if name.startswith("kernels/"))
    assert bool(kernel) is has_kernel
    assert (row["step"], row["sha256"]) == (1, hashlib.sha256(kernel).hexdigest())


def test_a_server_that_was_down_is_no_attempt_yet(tmp_path: Path) -> None:
    down = Unanswered("down", may_cost=False)
    files = _packed(tmp_path, "--problems", "1,2", "--judge", "none", answer=down)
    assert files["attempts.jsonl"] == b""


def test_a_wrong_key_ends_the_run_at_once_and_costs_nothing(tmp_path: Path) -> None:
    own = plan("--judge", "none", "--problems", "1,2,3")

    def script(_: object) -> Reply:
        raise Misconfigured("401")

    place, model = lay_out(tmp_path, own), ScriptedModel(script=script)
    with pytest.raises(Misconfigured):
        go_on(place, own, model)
    assert len(model.asked) == 1
    assert purse_of(place, own).spent.tokens == 0


def test_a_server_that_rejects_the_first_ask_ends_the_run(tmp_path: Path) -> None:
    own = plan("--judge", "none", "--problems", "1,2,3")

    def script(_: object) -> Reply:
        raise Rejected("HTTP 400: unknown parameter seed")

    place, model = lay_out(tmp_path, own), ScriptedModel(script=script)
    with pytest.raises(Misconfigured, match="unknown parameter seed"):
        go_on(place, own, model)
    assert len(model.asked) == 1


def test_a_prompt_that_no_model_reads_is_no_attempt(tmp_path: Path) -> None:
    long = Failed("context", "too long")
    files = _packed(tmp_path, "--problems", "1,2", "--judge", "none", answer=long)
    assert files["attempts.jsonl"] == b""


@pytest.mark.parametrize(
    ("words", "provider"),
    [
        ((), "openai"),
        (("--base-url", "https://api.deepseek.com/v1"), "deepseek"),
        (("--base-url", "https://models.lab.example/v1"), "self-hosted"),
        (("--base-url", "https://models.lab.example/v1", "--provider", "Lab"), "Lab"),
    ],
)
def test_the_manifest_names_a_provider_and_no_address(
    tmp_path: Path, words: tuple[str, ...], provider: str
) -> None:
    words = ("--problems", "1", "--judge", "none", "--top-k", "40", "--extra", '{"a": 1}', *words)
    files = _packed(tmp_path, *words, answer=reply(FENCED))
    manifest = json.loads(files["manifest.json"])
    assert manifest["provider"] == provider
    assert manifest["sampling"]["top_k"] == 40
    assert manifest["sampling"]["extra"] == '{"a":1}'
    assert b"lab.example" not in b"".join(files.values())


def test_an_ask_that_is_rejected_leaves_the_others_alone(tmp_path: Path) -> None:
    own = plan("--judge", "none", "--problems", "1,2,3")

    def script(ask: Ask) -> Reply:
        if "Problem 2:" in ask.messages[1].text:
            raise Rejected("400")
        return reply(FENCED)

    place = lay_out(tmp_path, own)
    outcomes = go_on(place, own, ScriptedModel(script=script))
    assert [one.reason for one in outcomes] == ["answered", "rejected", "answered"]
    assert len(_rows(_files(archive(place, own)))) == 2


def test_usage_that_no_server_tells_is_said_to_be_missing(tmp_path: Path) -> None:
    files = _packed(
        tmp_path,
        *("--problems", "1", "--judge", "none", "--price", "1,1,1"),
        answer=reply(FENCED, usage=None),
    )
    (row,) = _rows(files)
    assert row["answers_without_usage"] == 1
    assert row["cost_usd"] is None
    assert row["usage"]["output"] == 0


def test_hostile_text_stays_text_and_transcripts_stay_small(tmp_path: Path) -> None:
    answer = reply(HOSTILE + "x" * (3 << 20), usage=Usage(input=1, output=1))
    files = _packed(tmp_path, "--problems", "1", "--judge", "none", answer=answer)
    packed = gzip.decompress(files["transcripts/1/1.jsonl.gz"])
    assert len(packed) <= MAX_TRANSCRIPT_BYTES
    assert b"\x1b" not in packed
    said = _transcript(files, "transcripts/1/1.jsonl.gz")[-1]["text"]
    assert said.startswith(HOSTILE)
    assert said.endswith("characters left out)")


def test_many_long_messages_are_cut_alike(tmp_path: Path) -> None:
    calls = [("write", json.dumps({"source": "#" * 60_000 + str(at)})) for at in range(8)]
    words = ("--harness", "agentic", "--problems", "1", "--steps", "2", "--judge", "none")
    files = _packed(tmp_path, *words, answer=reply("", *calls))
    packed = gzip.decompress(files["transcripts/1/1.jsonl.gz"])
    assert len(packed) <= MAX_TRANSCRIPT_BYTES
    roles = [message["role"] for message in _transcript(files, "transcripts/1/1.jsonl.gz")]
    assert roles == ["system", "user", *(["assistant"] + ["tool"] * 8) * 8]


def test_an_attempt_that_waits_is_packed_with_what_it_waits_for(tmp_path: Path) -> None:
    own = plan("--harness", "agentic", "--problems", "1", "--judge", "none")
    answers = iter([reply("", ("write", json.dumps({"source": KERNEL})))])

    def script(_: object) -> Reply:
        for one in answers:
            return one
        raise Unanswered("down", may_cost=False)

    place = lay_out(tmp_path, own)
    (outcome,) = go_on(place, own, ScriptedModel(script=script))
    assert not outcome.is_ended
    (row,) = _rows(_files(archive(place, own)))
    assert (row["step"], row["ended"]) == (1, "endpoint_down")
    assert place.events(*next(attempts(own))).exists()
