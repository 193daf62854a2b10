"""`pkb convert` makes archives of attempts of what PKB's harness and mini-swe-agent leave."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.evaluator.client.conftest import Pkb
from tests.evaluator.client.scripted import write

Output = pytest.CaptureFixture[str]

GOOD = "def solution(tensor):\n    return tensor\n"
TREE = "solutions_cuda_bf16_h100_8_together_zai-org_GLM-5.1"
KEY = "tgp_v1_0123456789abcdef0123"
OTHER_KEY = "a-key-of-no-known-kind"
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": None,
}


def _files(path: Path) -> dict[str, bytes]:
    found = {}
    with tarfile.open(path) as archive:
        for entry in archive:
            file = archive.extractfile(entry)
            assert file
            found[entry.name] = file.read()
    return found


def _lines(files: dict[str, bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files["attempts.jsonl"].splitlines()]


def test_a_generators_folders_become_attempts(pkb: Pkb, tmp_path: Path) -> None:
    kernels = {"1_allreduce_cuda.py": GOOD, "14_gemm_allscatter_cuda.py": GOOD}
    first = write(tmp_path / "a" / TREE, {**kernels, "47_fsdp_adamw_sharded_cuda.py": GOOD})
    other = write(tmp_path / "b" / TREE, {"1_allreduce_cuda.py": "", "41_ddp_cuda.py": GOOD})
    out = tmp_path / "out.tar.gz"
    assert pkb("convert", first, other, "-o", out) == 0
    files = _files(out)
    assert sorted(name for name in files if name.endswith(".py")) == [
        "kernels/14_gemm_allgather/attempt_1/step_01_cuda.py",
        "kernels/1_allreduce/attempt_1/step_01_cuda.py",
        "kernels/1_allreduce/attempt_2/step_01_cuda.py",
        "kernels/40_ddp/attempt_2/step_01_cuda.py",
    ]
    manifest = json.loads(files["manifest.json"])
    told = {name: value for name, value in manifest.items() if value is not None}
    assert told == {
        **{"format": "pkb-attempts/1", "model": "GLM-5.1", "provider": "together"},
        **{"harness": "repeated", "backend": "cuda", "hardware": "h100x8", "world_size": 8},
        "dtype": "bfloat16",
    }
    ended = {(line["problem"], line["attempt"]): line["ended"] for line in _lines(files)}
    assert ended[1, 1] == "answered"
    assert ended[1, 2] == "no_answer"
    digest = hashlib.sha256(GOOD.encode()).hexdigest()
    assert _lines(files)[0]["sha256"] == digest
    names = {(one["problem"], one["attempt"]): one["converted_from"] for one in _lines(files)}
    assert names[14, 1] == f"{TREE}/14_gemm_allscatter_cuda.py"
    assert names[40, 2] == f"{TREE}/41_ddp_cuda.py"
    assert names[1, 2] == f"{TREE}/1_allreduce_cuda.py"


def _log(problem: str, status: str, **meta: Any) -> dict[str, str]:
    """The log of a run of the agent, with keys where they are known to stand."""
    argv = ["generate_kernel_agent.py", "--together-api-key", KEY, "--problem", "1"]
    said = {
        **{"problem_id": problem, "backend": "cuda", "model": "together_ai/zai-org/GLM-5.1"},
        **{"argv": argv, "cost_limit": 15.0, "step_limit": 3},
        **{"started_at": "2026-06-01T10:00:00", "finished_at": "2026-06-01T10:01:30", **meta},
    }
    call = {"id": "c1", "function": {"name": "bash", "arguments": f"echo {KEY}"}}
    reply = {"usage": USAGE, "model": "GLM-5.1"}
    trajectory = {
        "info": {
            "exit_status": status,
            "mini_version": "2.2.6",
            "model_stats": {"instance_cost": 0.25, "api_calls": 2},
            "config": {"model": {"model_kwargs": {"api_key": OTHER_KEY}}},
        },
        "messages": [
            {"role": "system", "content": "You write kernels."},
            {"role": "user", "content": [{"type": "text", "text": f"Task. {OTHER_KEY}"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call],
                "extra": {"response": reply},
            },
            {"role": "tool", "content": "x" * 100_000, "tool_call_id": "c1"},
            {"role": "assistant", "content": "Done.", "extra": {}},
        ],
    }
    folder = f"logs/kernelgen_agent/{meta.get('at', '20260601_100000')}_miniswe_{problem}_cuda"
    return {
        f"{folder}/meta.json": json.dumps(said),
        f"{folder}/miniswe_agent.traj.json": json.dumps(trajectory),
        f"{folder}/command.txt": f"python {KEY}",
    }


def test_an_agents_logs_become_attempts_without_its_keys(pkb: Pkb, tmp_path: Path) -> None:
    root = write(
        tmp_path / "pkb",
        {
            "solutions_cuda/1_allreduce_cuda.py": GOOD,
            "solutions_cuda/3_broadcast_cuda.py": GOOD,
            **_log("1_allreduce", "LimitsExceeded", at="20260601_090000"),
            **_log("1_allreduce", "Submitted"),
            **_log("2_allgather", "LimitsExceeded"),
        },
    )
    out = tmp_path / "out.tar.gz"
    assert pkb("convert", root, "-o", out) == 0
    files = _files(out)
    lines = {line["problem"]: line for line in _lines(files)}
    assert {number: line["ended"] for number, line in lines.items()} == {
        **{1: "done", 2: "steps"},
        3: None,
    }
    assert files["kernels/2_allgather/attempt_1/step_01_cuda.py"] == b""
    assert {one["converted_from"] for one in lines.values()} == {
        f"solutions_cuda/{name}_cuda.py" for name in ("1_allreduce", "2_allgather", "3_broadcast")
    }
    first = lines[1]
    assert first["usage"] == {"input": 100, "cached": 40, "output": 50, "reasoning": 0}
    assert (first["answers"], first["answers_without_usage"]) == (2, 1)
    assert (first["cost_usd"], first["wall_s"], first["served_by"]) == (0.25, 90.0, "GLM-5.1")
    assert lines[3]["usage"] is None
    assert f"prompts/{first['prompt_sha256']}.md" in files
    messages = gzip.decompress(files["transcripts/1/1.jsonl.gz"]).decode().splitlines()
    assert [json.loads(line)["role"] for line in messages][-2:] == ["tool", "assistant"]
    assert "characters left out" in messages[3]
    manifest = json.loads(files["manifest.json"])
    assert (manifest["harness"], manifest["model"]) == ("agentic", "GLM-5.1")
    everything = b"".join(files.values()) + "".join(messages).encode()
    assert KEY.encode() not in everything
    assert OTHER_KEY.encode() not in everything


@pytest.mark.parametrize(
    ("files", "words", "says"),
    [
        ({"a.txt": ""}, (), "has no folder of kernels"),
        ({f"{TREE}/helper.py": ""}, (), "is no kernel"),
        ({f"{TREE}/99_nothing_cuda.py": GOOD}, (), "There is no problem 99_nothing"),
        (
            {"solutions_cuda/1_allreduce_cuda.py": GOOD},
            ("--harness", "agentic"),
            "which model",
        ),
        (
            {f"{TREE}/1_allreduce_cuda.py": GOOD, f"{TREE}x/2_allgather_cuda.py": GOOD},
            (),
            "several models: GLM-5.1, GLM-5.1x",
        ),
        (
            {f"{TREE}/1_allreduce_cuda.py": GOOD, f"{TREE}x/1_allreduce_cuda.py": GOOD},
            ("--model", "M"),
            "more than once",
        ),
        (
            {**_log("1_allreduce", "Submitted"), **_log("2_allgather", "Submitted", model="a/b")},
            (),
            "several models: GLM-5.1, b",
        ),
        ({"logs/kernelgen_agent/1_miniswe_x/meta.json": "{"}, (), "is no JSON"),
        ({"logs/kernelgen_agent/1_miniswe_x/meta.json": "{}"}, (), "does not say the problem"),
    ],
)
def test_what_cannot_be_converted_is_named_and_nothing_written(
    *,
    pkb: Pkb,
    tmp_path: Path,
    capsys: Output,
    files: dict[str, str],
    words: tuple[str, ...],
    says: str,
) -> None:
    folder = write(tmp_path / "in", files)
    out = tmp_path / "out.tar.gz"
    assert pkb("convert", folder, "-o", out, *words) == 2
    assert says in capsys.readouterr().err
    assert not out.exists()


def test_the_same_folders_make_the_same_bytes_and_replace_no_file(pkb: Pkb, tmp_path: Path) -> None:
    folder = write(tmp_path / TREE, {"1_allreduce_cuda.py": GOOD})
    for name in ("a", "b"):
        assert pkb("convert", folder, "-o", tmp_path / name) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert pkb("convert", folder, "-o", tmp_path / "a") == 2
