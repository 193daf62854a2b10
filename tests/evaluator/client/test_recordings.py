"""`pkb convert` takes what other packages recorded, and guesses nothing that they do not say."""

from __future__ import annotations

import gzip
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.evaluator.client.conftest import Pkb
from tests.evaluator.client.scripted import write

Output = pytest.CaptureFixture[str]
RECORDINGS = Path(__file__).with_name("recordings")
GOOD = "def solution(tensor):\n    return tensor\n"
FENCED = f"Here:\n\n```python\n{GOOD}```\n"
TOKENS = {"input": 100, "cached": 50, "output": 50, "reasoning": 0}


class Converted(NamedTuple):
    """Holds an archive: its manifest, its lines by problem and attempt, all its files."""

    manifest: dict[str, Any]
    lines: dict[tuple[int, int], dict[str, Any]]
    files: dict[str, bytes]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.tar.gz"


def _read(path: Path) -> Converted:
    files = {}
    with tarfile.open(path) as archive:
        for entry in archive:
            file = archive.extractfile(entry)
            assert file
            data = file.read()
            files[entry.name] = gzip.decompress(data) if entry.name.endswith(".gz") else data
    lines = [json.loads(line) for line in files["attempts.jsonl"].splitlines()]
    told = json.loads(files["manifest.json"])
    manifest = {name: value for name, value in told.items() if value is not None}
    return Converted(manifest, {(one["problem"], one["attempt"]): one for one in lines}, files)


def _jsonl(folder: Path, *records: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_answers_of_any_harness_are_read_a_line_each(pkb: Pkb, tmp_path: Path, out: Path) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 50}
    path = _jsonl(
        tmp_path,
        {"problem": 1, "sample": 0, "completion": FENCED, "usage": usage, "cost_usd": 0.5},
        {"problem": "allreduce", "sample": 1, "completion": "No.", "prompt": "Write it."},
        {
            "problem": "13_gemm_allreduce",
            "sample": 0,
            "completion": FENCED[:30],
            "finish": "length",
        },
        {"problem": 2, "sample": 0, "completion": "```python\n" + "\ud800def solution(): ..."},
    )
    with path.open("a") as file:
        file.write('{"problem": 3, "sample": 0, "completion": "No:\u2028 x"}\r\n\n')
    assert pkb("convert", path, "-o", out, "--model", "M", "--backend", "cuda") == 0
    made = _read(out)
    assert made.manifest["harness"] == "repeated"
    ended = {place: line["ended"] for place, line in made.lines.items()}
    assert ended[1, 1] == "answered"
    assert ended[1, 2] == "no_answer"
    assert ended[13, 1] == "cut_off"
    assert made.files["kernels/1_allreduce/attempt_1/step_01_cuda.py"] == GOOD.encode()
    assert made.lines[1, 1]["usage"] == {"input": 100, "cached": 0, "output": 50, "reasoning": 0}
    assert (made.lines[1, 1]["cost_usd"], made.lines[1, 2]["usage"]) == (0.5, None)
    assert b"Write it." in made.files["transcripts/1/2.jsonl.gz"]


@pytest.mark.parametrize(
    ("record", "words", "says"),
    [
        ({"problem": 1, "sample": 0, "completion": ""}, (), "1: no backend is named"),
        ({"sample": 0, "completion": ""}, ("--backend", "cuda"), "1: no problem is named"),
        ({"problem": 999, "sample": 0, "completion": ""}, ("--backend", "cuda"), "no problem 999"),
        ({"problem": [1], "sample": 0, "completion": ""}, ("--backend", "cuda"), "no problem is"),
        ({"problem": 1, "completion": ""}, ("--backend", "cuda"), "1: no `sample`"),
        ({"problem": 1, "sample": True, "completion": ""}, ("--backend", "cuda"), "no `sample`"),
        ({"problem": 1, "sample": -2, "completion": ""}, ("--backend", "cuda"), "-2 is no attempt"),
        (
            {"problem": 1, "sample": 0},
            ("--backend", "cuda"),
            "neither problem, sample and completion",
        ),
        ({"problem": 1, "sample": 0, "completion": ""}, ("--backend", "cuda"), "Give --model"),
    ],
)
def test_what_is_not_said_is_asked_for(
    *,
    pkb: Pkb,
    capsys: Output,
    tmp_path: Path,
    record: dict[str, Any],
    words: tuple[str, ...],
    says: str,
) -> None:
    out = tmp_path / "made.tar.gz"
    assert pkb("convert", _jsonl(tmp_path, record), "-o", out, *words) == 2
    assert says in capsys.readouterr().err
    assert not out.exists()


def test_all_that_is_missing_is_named_at_once(pkb: Pkb, capsys: Output, tmp_path: Path) -> None:
    records = [{"problem": name, "sample": 0, "completion": ""} for name in range(100, 119)]
    records.append({"problem": 1, "completion": ""})
    assert pkb("convert", _jsonl(tmp_path, *records), "--backend", "cuda") == 2
    told = capsys.readouterr().err
    assert "20 things are not said" in told
    assert told.count("answers.jsonl:") == 12
    assert "and 8 more" in told


def test_two_answers_for_one_place_are_refused(pkb: Pkb, capsys: Output, tmp_path: Path) -> None:
    record = {"problem": 1, "sample": 1, "completion": FENCED, "model": "M", "backend": "cuda"}
    assert pkb("convert", _jsonl(tmp_path, record, record)) == 2
    assert "more than once in attempt 1" in capsys.readouterr().err
    other = {**record, "sample": 2, "model": "N"}
    assert pkb("convert", _jsonl(tmp_path, record, other)) == 2
    assert "of several models: M, N" in capsys.readouterr().err


def test_a_trajectory_of_mini_swe_agent_is_an_agentic_attempt(pkb: Pkb, out: Path) -> None:
    assert pkb("convert", RECORDINGS / "1_allreduce_cuda.traj.json", "-o", out) == 0
    made = _read(out)
    assert made.manifest["harness"] == "agentic"
    assert made.manifest["harness_version"] == "mini-swe-agent 2.4.6"
    assert "provider" not in made.manifest
    (line,) = made.lines.values()
    assert (line["ended"], line["answers"]) == ("done", 2)
    assert line["usage"] == {name: 2 * count for name, count in TOKENS.items()}
    assert made.files["kernels/1_allreduce/attempt_1/step_01_cuda.py"] == GOOD.encode()
    assert b"not-a-key" not in b"".join(made.files.values())


def test_a_trajectory_says_its_problem_by_its_task(
    pkb: Pkb, tmp_path: Path, capsys: Output, out: Path
) -> None:
    steps = json.loads((RECORDINGS / "1_allreduce_cuda.traj.json").read_text())
    steps["messages"][1]["content"] += " Write solutions_triton/3_broadcast_triton.py."
    steps["info"]["submission"] = ""
    other = "solutions_triton_bf16_none_openai_gpt/3_broadcast_triton.py"
    kernels = {"solutions_triton/3_broadcast_triton.py": GOOD + "# own\n", other: GOOD}
    kernels["solutions_triton/1_allreduce_triton.py"] = GOOD
    root = write(tmp_path / "pkb", kernels)
    log = write(tmp_path, {"run.traj.json": json.dumps(steps)}) / "run.traj.json"
    assert pkb("convert", log, root, "-o", out) == 0
    made = _read(out)
    assert made.manifest["harness"] == "agentic"
    assert made.lines[3, 1]["converted_from"] == "solutions_triton/3_broadcast_triton.py"
    name = "kernels/3_broadcast/attempt_1/step_01_triton.py"
    assert made.files[name].endswith(b"# own\n")
    assert "left out, as no trajectory is named for it" in capsys.readouterr().err


def test_what_a_trajectory_does_not_say_is_asked_for(
    pkb: Pkb, tmp_path: Path, capsys: Output
) -> None:
    steps = json.loads((RECORDINGS / "1_allreduce_cuda.traj.json").read_text())
    steps["info"]["submission"] = ""
    write(
        tmp_path,
        {"run.traj.json": json.dumps(steps), "2_allgather_cuda.traj.json": json.dumps(steps)},
    )
    assert pkb("convert", tmp_path) == 2
    told = capsys.readouterr().err
    assert "run.traj.json: no backend is named" in told
    assert "2_allgather_cuda.traj.json: its kernel is in no folder" in told


@pytest.mark.parametrize("text", ["{}", "[]", '{"messages": 7, "info": {"config": []}}', "{"])
def test_what_is_no_trajectory_is_refused(
    pkb: Pkb, tmp_path: Path, capsys: Output, text: str
) -> None:
    path = write(tmp_path, {"1_allreduce_cuda.traj.json": text}) / "1_allreduce_cuda.traj.json"
    assert pkb("convert", path) == 2
    assert "pkb: " in capsys.readouterr().err


def test_kernels_of_an_agent_without_its_logs_are_not_taken_for_zero_shot(
    pkb: Pkb, tmp_path: Path, capsys: Output, out: Path
) -> None:
    root = write(tmp_path / "pkb", {"solutions_cuda/1_allreduce_cuda.py": GOOD})
    assert pkb("convert", root, "--model", "M", "-o", out) == 2
    assert "--trajectory" in capsys.readouterr().err
    assert pkb("convert", root, "--model", "M", "--harness", "agentic", "-o", out) == 0
    assert _read(out).manifest["harness"] == "agentic"


def test_a_log_of_inspect_becomes_attempts(pkb: Pkb, out: Path) -> None:
    assert pkb("convert", RECORDINGS / "inspect.json", "-o", out) == 0
    made = _read(out)
    assert made.manifest["sampling"] == {"temperature": 0.5, "max_output_tokens": 4096}
    assert (made.manifest["model"], made.manifest["harness"]) == ("scripted-1", "repeated")
    ended = {place: line["ended"] for place, line in made.lines.items()}
    assert ended == {
        **dict.fromkeys(((1, 1), (1, 2)), "answered"),
        **dict.fromkeys(((2, 1), (2, 2)), "no_answer"),
        **dict.fromkeys(((13, 1), (13, 2)), "cut_off"),
    }
    assert all(line["usage"] == TOKENS for line in made.lines.values())


def test_a_packed_log_of_inspect_is_the_same(pkb: Pkb, tmp_path: Path, out: Path) -> None:
    log = json.loads((RECORDINGS / "inspect.json").read_text())
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for sample in log.pop("samples"):
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("header.json", json.dumps(log))
    assert pkb("convert", tmp_path / "log.eval", "-o", out) == 0
    assert len(_read(out).lines) == 6


@pytest.mark.skipif(hasattr(zipfile, "ZIP_ZSTANDARD"), reason="this Python unpacks Zstandard")
def test_what_this_python_cannot_unpack_says_how_to(pkb: Pkb, capsys: Output) -> None:
    assert pkb("convert", RECORDINGS / "inspect.eval") == 2
    assert "inspect log convert --to json" in capsys.readouterr().err


def test_a_number_that_inspect_gave_names_no_problem(
    pkb: Pkb, tmp_path: Path, capsys: Output, out: Path
) -> None:
    log = json.loads((RECORDINGS / "inspect.json").read_text())
    for number, sample in enumerate(log["samples"], start=1):
        sample["id"], sample["metadata"]["task"] = number, sample["id"]
    path = write(tmp_path, {"log.json": json.dumps(log)}) / "log.json"
    assert pkb("convert", path, "-o", out) == 2
    assert "--problem-field" in capsys.readouterr().err
    assert pkb("convert", path, "-o", out, "--problem-field", "metadata.task") == 0
    assert {problem for problem, _ in _read(out).lines} == {1, 2, 13}


def test_rollouts_of_verifiers_become_attempts(pkb: Pkb, out: Path) -> None:
    assert pkb("convert", RECORDINGS / "verifiers_0_1", "-o", out) == 0
    made = _read(out)
    assert made.manifest["harness_version"] == "verifiers 0.1.14"
    assert made.manifest["sampling"] == {"temperature": 0.5, "max_output_tokens": 512}
    ended = [(place, line["ended"]) for place, line in made.lines.items()]
    assert ended[:2] == [((1, 1), "answered"), ((1, 2), "answered")]
    assert ended[2:] == [((2, 1), "no_answer"), ((2, 2), "no_answer")]


def test_traces_of_verifiers_become_attempts(pkb: Pkb, out: Path) -> None:
    assert pkb("convert", RECORDINGS / "verifiers_0_4", "-o", out, "--backend", "cuda") == 0
    made = _read(out)
    assert [line["ended"] for line in made.lines.values()] == ["answered", "answered", "cut_off"]
    assert made.lines[1, 2]["usage"] == {**TOKENS, "reasoning": 20}


def test_a_kernel_that_tools_wrote_is_not_taken_for_none(
    pkb: Pkb, tmp_path: Path, capsys: Output
) -> None:
    call = {"id": "1", "function": {"name": "bash", "arguments": "cat > kernel.py"}}
    rollout = {
        "prompt": [{"role": "user", "content": "Write."}],
        "completion": [{"role": "assistant", "content": "Done.", "tool_calls": [call]}],
        "info": {"problem": "1_allreduce", "backend": "cuda"},
    }
    assert pkb("convert", _jsonl(tmp_path, rollout), "--model", "M") == 2
    assert "the kernel cannot be told" in capsys.readouterr().err


def test_a_run_of_kernelbench_becomes_attempts(
    pkb: Pkb, tmp_path: Path, capsys: Output, out: Path
) -> None:
    config = "backend: triton\nlevel: 5\nmax_tokens: 4096\nmodel_name: zai/GLM-5.1\n"
    config += "run_name: first\nserver_type: together\ntemperature: 0.7\n"
    run = write(
        tmp_path / "first",
        {
            "generation_config.yaml": config,
            "level_5_problem_1_sample_0_kernel.py": GOOD,
            "level_5_problem_13_sample_1_kernel.py": GOOD,
        },
    )
    assert pkb("convert", run, "-o", out) == 0
    made = _read(out)
    assert set(made.lines) == {(1, 1), (13, 2)}
    told = {**made.manifest, "format": None}
    assert (told["model"], told["provider"], told["backend"]) == ("GLM-5.1", "together", "triton")
    assert told["sampling"] == {"temperature": 0.7, "max_output_tokens": 4096}

    write(run, {"level_1_problem_2_sample_0_kernel.py": "class ModelNew: ...\n"})
    assert pkb("convert", run) == 2
    assert "levels 1, 5; give PKB's by --level" in capsys.readouterr().err
    assert pkb("convert", run, "--level", 1) == 2
    assert "defines `solution`" in capsys.readouterr().err
