"""Trees of kernels as PKB's generator names them: handed in whole, by archive and by folder."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from leaderboard.models import Hardware, Kernel, LanguageModel, Problem, Run, Submission
from leaderboard.models.abilities import waiting_for
from leaderboard.submissions.sources import Candidate, checked_problem
from leaderboard.submissions.trees import Tree, published_number, tree_of
from tests.leaderboard import factory
from tests.leaderboard.running import HELLO, say_hello
from tests.leaderboard.uploads import GOOD, Send, make_tar, make_zip, stored

pytestmark = pytest.mark.server

GPT = "solutions_cuda_bf16_h100_8_openai_gpt-5.5"
GEMINI = "solutions_cuda_bf16_h100_8_google_gemini-3-pro-preview"
# Some of the names that the published tree has, as it has them, and today's problem of each.
STEMS = {
    **{"1_allreduce_cuda": 1, "allgather_cuda": 2, "12_gemm_allgather_cuda": 12},
    **{"14_gemm_allscatter_cuda": 14, "18_rms_norm": 18, "41_ddp_cuda": 40},
}
HARNESS = {"harness": "zero-shot"}


@pytest.fixture
def problems(db: None) -> dict[int, Problem]:
    """What the stems name, and GPU hosts of four and eight ranks."""
    slugs = {
        **{1: "allreduce", 2: "allgather", 12: "allgather_gemm", 14: "gemm_allgather"},
        **{18: "tp_rms_norm", 40: "ddp", 41: "zero1_optimizer_shard"},
    }
    found = {number: factory.make_problem(number, slug) for number, slug in slugs.items()}
    for problem in found.values():
        problem.payload["tolerances"]["bfloat16"] = {"atol": 3e-2, "rtol": 2e-2}
        problem.save()
    for slug, ranks in (("h200x4", 4), ("h100x8", 8), ("h200x8", 8)):
        Hardware.objects.create(slug=slug, title=slug, device="cuda", max_world_size=ranks)
    return found


def _tree(folder: str = GPT, *stems: str) -> dict[str, bytes]:
    return {f"{folder}/{stem}.py": GOOD + stem.encode() for stem in stems or STEMS}


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _say(*words: Any) -> str:
    out = io.StringIO()
    call_command("import_submission", *words, stdout=out)
    return out.getvalue()


def _settings() -> set[tuple[str, int, str]]:
    return set(Run.objects.values_list("hardware_id", "world_size", "dtype"))


@pytest.mark.parametrize("pack", [make_zip, make_tar])
def test_an_archive_of_a_tree_is_one_submission(
    send: Send, problems: dict[int, Problem], pack: Any
) -> None:
    answer = send(HARNESS, pack(_tree()))
    assert answer.status_code == 201, answer.json()
    assert sorted(Kernel.objects.values_list("problem_id", "backend")) == [
        (number, "cuda") for number in sorted(STEMS.values())
    ]
    assert _settings() == {("h100x8", 8, "bfloat16")}
    submission = Submission.objects.get()
    assert (submission.model.name, submission.model.vendor) == ("gpt-5.5", "OpenAI")
    assert submission.notes == ""


def test_a_folder_of_a_tree_is_one_submission(problems: dict[int, Problem], tmp_path: Path) -> None:
    _write(_tree(GEMINI), tmp_path)
    for word in ("stored", "already stored"):
        told = _say(tmp_path / GEMINI, "--harness=zero-shot")
        assert f"{word}, {len(STEMS)} runs" in told
    submission = Submission.objects.get()
    assert (submission.model.name, submission.model.vendor) == ("Gemini 3 Pro", "Google")
    numbers = submission.kernels.values_list("problem_id", flat=True)
    assert sorted(numbers) == sorted(STEMS.values())
    assert _settings() == {("h100x8", 8, "bfloat16")}


def test_what_the_uploader_says_wins(send: Send, problems: dict[int, Problem]) -> None:
    said = {"model": "GPT 5.5 (high)", "vendor": "Open AI", "world_size": 4, "dtype": "float32"}
    assert send({**HARNESS, **said}, make_zip(_tree())).status_code == 201
    assert _settings() == {("h100x8", 4, "float32")}
    model = LanguageModel.objects.get()
    assert (model.name, model.vendor) == ("GPT 5.5 (high)", "Open AI")
    assert send({**HARNESS, "hardware": "h200x4"}, make_zip(_tree())).status_code == 201
    assert ("h200x4", 4, "bfloat16") in _settings()


def test_without_a_host_as_large_a_tree_is_judged_as_usual(
    send: Send, problems: dict[int, Problem]
) -> None:
    Hardware.objects.exclude(slug="h200x4").delete()
    assert send(HARNESS, make_zip(_tree())).status_code == 201
    assert _settings() == {("h200x4", 4, "bfloat16")}


def test_the_likely_vendor_contradicts_nothing(send: Send, problems: dict[int, Problem]) -> None:
    LanguageModel.objects.create(slug="gpt-5-5", name="GPT-5.5", vendor="OpenAI OpCo")
    assert send(HARNESS, make_zip(_tree())).status_code == 201
    assert Submission.objects.get().model.vendor == "OpenAI OpCo"


def test_attempts_are_folders_around_trees(send: Send, problems: dict[int, Problem]) -> None:
    again = {f"attempt_2/{path}": data for path, data in _tree(GPT, "1_allreduce_cuda").items()}
    assert send(HARNESS, make_zip({**_tree(), **again})).status_code == 201
    assert Submission.objects.get().k == 2
    attempts = Kernel.objects.filter(problem_id=1).values_list("attempt", flat=True)
    assert sorted(attempts) == [1, 2]


def test_trees_of_one_model_and_two_backends_go_together(
    send: Send, problems: dict[int, Problem]
) -> None:
    other = "solutions_parallelkittens_bf16_h100_8_openai_gpt-5.5"
    files = {**_tree(GPT, "1_allreduce_cuda"), **_tree(other, "2_allgather_pk")}
    assert send(HARNESS, make_zip(files)).status_code == 201
    assert set(Kernel.objects.values_list("problem_id", "backend")) == {
        (1, "cuda"),
        (2, "parallelkittens"),
    }


def test_a_withdrawn_problem_is_left_out_and_named(
    send: Send, problems: dict[int, Problem], tmp_path: Path
) -> None:
    files = _tree(GPT, "1_allreduce_cuda", "47_fsdp_adamw_sharded_cuda")
    assert send({**HARNESS, "notes": "Mine."}, make_zip(files)).status_code == 201
    submission = Submission.objects.get()
    assert submission.kernels.get().problem_id == 1
    assert submission.notes.startswith("Mine.\n\nLeft out")
    assert f"{GPT}/47_fsdp_adamw_sharded_cuda.py" in submission.notes
    _write(files, tmp_path)
    assert "left out" in _say(tmp_path / GPT, "--harness=human")


UNUSUAL = {
    "1_allreduce_cuda": b"",
    "allgather_cuda": b'CUDA = """\n__global__ void never_ended() {',
    "12_gemm_allgather_cuda": b"def all_gather(tensor):\n    return tensor\n",
}


def test_what_a_model_wrote_into_a_tree_is_stored_as_it_is(
    send: Send, problems: dict[int, Problem], client: Client
) -> None:
    """Left out, an empty answer or one that is none would flatter the model."""
    files = {f"{GPT}/{stem}.py": text for stem, text in UNUSUAL.items()}
    assert send(HARNESS, make_zip(files)).status_code == 201
    kept = {kernel.problem_id: kernel.source for kernel in Kernel.objects.select_related("source")}
    assert {number: source.held_text.encode() for number, source in kept.items()} == {
        STEMS[stem]: text for stem, text in UNUSUAL.items()
    }
    assert kept[1].digest == hashlib.sha256(b"").hexdigest()
    assert Run.objects.count() == len(UNUSUAL)
    for source in kept.values():
        for form in ("", ".json"):
            assert client.get(f"/kernels/{source.digest}{form}").status_code == 200


def test_a_file_that_needs_multicast_waits(send: Send, problems: dict[int, Problem]) -> None:
    source = GOOD + b"\n# with the pointer of a switch\nPOINTER = handle.multicast_ptr\n"
    assert send(HARNESS, make_zip({f"{GPT}/1_allreduce_cuda.py": source})).status_code == 201
    run = Run.objects.get()
    assert "multicast" in run.needed
    plain = ["nccl", "nvcc", "peer_access", "symmetric_memory", "triton"]
    say_hello(replace(HELLO, queue=run.hardware_id, hardware="8 x H100", abilities=plain))
    assert "NVLink multicast" in waiting_for([Run.objects.get()])[run.pk]


def test_a_file_for_eight_ranks_is_judged_on_eight(
    send: Send, problems: dict[int, Problem]
) -> None:
    kittens = b'C = """\n#include "kittens.cuh"\nconstexpr int NUM_DEVICES = 8;\n"""\n'
    tree = "solutions_parallelkittens_bf16_h100_4_google_gemini-3-pro-preview"
    files = {f"{tree}/1_allreduce_parallelkittens.py": GOOD + kittens}
    assert send(HARNESS, make_zip(files)).status_code == 201
    assert Run.objects.get().world_size == 8


def test_a_tree_of_nothing_else_is_refused(send: Send, problems: dict[int, Problem]) -> None:
    answer = send(HARNESS, make_zip(_tree(GPT, "47_fsdp_adamw_sharded_cuda")))
    assert answer.json()["error"]["code"] == "no_kernel"
    assert stored() == [0, 0, 0, 0, 0]


def test_every_file_that_matches_no_problem_is_named_with_the_nearest(
    send: Send, problems: dict[int, Problem], tmp_path: Path
) -> None:
    bad = ("42_zero_optimizer_shard_cuda", "99_all_gather_cuda", "ddpp_cuda")
    files = _tree(GPT, *STEMS, *bad)
    fields = send(HARNESS, make_zip(files)).json()["error"]["fields"]
    assert fields.keys() == {f"{GPT}/{stem}.py" for stem in bad}
    assert stored() == [0, 0, 0, 0, 0]
    _write(files, tmp_path)
    with pytest.raises(CommandError) as refused:
        _say(tmp_path / GPT, "--harness=human")
    for told in ("41_zero1_optimizer_shard", "2_allgather", "Did you mean ddp?"):
        assert told in str(refused.value)
        assert told in json.dumps(fields)
    assert stored() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({**_tree(GPT, "1_allreduce_cuda"), **_tree(GEMINI, "2_allgather_cuda")}, "several"),
        (_tree("solutions_cuda", "1_allreduce_cuda"), "no model"),
        (_tree("kernels", "1_allreduce_cuda"), "no model"),
    ],
)
def test_kernels_of_no_one_model_are_refused(
    send: Send, problems: dict[int, Problem], files: dict[str, bytes], told: str
) -> None:
    error = send(HARNESS, make_zip(files)).json()["error"]
    assert (error["code"], list(error["fields"])) == ("no_one_model", ["model"])
    assert told in error["message"]
    assert stored() == [0, 0, 0, 0, 0]
    assert send({**HARNESS, "model": "M"}, make_zip(files)).status_code == 201


def test_old_names_mean_nothing_outside_of_a_tree(send: Send, problems: dict[int, Problem]) -> None:
    for stem, told in (("41_ddp_cuda", "40_ddp"), ("12_gemm_allgather_cuda", "14_gemm_allgather")):
        error = send({**HARNESS, "model": "M"}, make_zip(_tree("mine", stem))).json()["error"]
        assert error["code"] == "name_disagrees"
        assert told in error["fix"]
    assert stored() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("folder", "tree"),
    [
        (
            GPT,
            Tree(backend="cuda", dtype="bfloat16", hardware="h100x8", world_size=8,
                 vendor="OpenAI", model="gpt-5.5"),
        ),
        (
            "solutions_triton_fp16_none_together_zai-org_GLM-5.1",
            Tree(backend="triton", dtype="float16", vendor="Z.ai", model="GLM-5.1"),
        ),
        (
            "solutions_parallelkittens_fp32_b200_72_together_Qwen_Qwen3-Coder-Next-FP8",
            Tree(backend="parallelkittens", dtype="float32", hardware="b200x72", world_size=72,
                 vendor="Qwen", model="Qwen3-Coder-Next-FP8"),
        ),
        ("solutions_pk", Tree(backend="parallelkittens")),
        ("solutions_rust_bf16_h100_8_openai_gpt-5.5", None),
        ("solutions_cuda_bf16_h100_8_openai_", None),
        ("solutions_cuda_int8_h100_8_openai_gpt-5.5", None),
        ("my_solutions_cuda", None),
        (f"{GPT}/attempt_3", Tree(backend="cuda", dtype="bfloat16", hardware="h100x8",
                                  world_size=8, vendor="OpenAI", model="gpt-5.5")),
    ],
)  # fmt: skip
def test_a_folder_is_read(folder: str, tree: Tree | None) -> None:
    assert tree_of(PurePosixPath(folder, "1_allreduce_cuda.py")) == tree


def test_every_problem_has_its_two_numbers_and_its_bare_name() -> None:
    text = (Path(settings.BASE_DIR) / "fixtures" / "problems.json").read_text()
    rows = [Problem(number=p["number"], slug=p["slug"]) for p in json.loads(text)["problems"]]
    known = {str(row.number): row for row in rows} | {row.slug: row for row in rows}
    tree = Tree(backend="cuda")
    for row in rows:
        stems = [(row.slug, None), (str(row.number), row.slug)]
        stems.append((str(published_number(row.number)), row.slug))
        for problem, slug in stems:
            candidate = Candidate(
                problem=problem, slug=slug, backend="cuda", source=GOOD.decode(), tree=tree
            )
            assert checked_problem(candidate, known) is row
    assert len(rows) >= 87
    assert published_number(87) == 88
