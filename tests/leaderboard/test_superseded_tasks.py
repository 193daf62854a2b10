"""Kernels of published trees are marked that were written for an older form of their task."""

from __future__ import annotations

import io
import json
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from leaderboard.models import (
    Hardware,
    Kernel,
    Problem,
    Run,
    Submission,
    Summary,
    Trust,
)
from leaderboard.runs import imported_reports
from leaderboard.submissions.archives import Member
from leaderboard.submissions.sources import checked_problem, from_member
from leaderboard.submissions.superseded_tasks import older_tasks
from tests.benchmark_scripts import script
from tests.leaderboard import factory
from tests.leaderboard.test_import_reports import line_of
from tests.leaderboard.uploads import GOOD, Send, make_zip

pytestmark = pytest.mark.server

TREE = "solutions_cuda_bf16_h100_8_openai_gpt-5.5"
OLDER = (
    *("26_moe_token_preprocess", "37_ulysses_gather_seq_scatter_heads"),
    *("38_ulysses_gather_heads_scatter_seq", "65_gnn_neighbor_sampling"),
)
TODAYS = (
    *("26_moe_token_preprocess", "36_ulysses_gather_seq_scatter_heads"),
    *("37_ulysses_gather_heads_scatter_seq", "64_gnn_neighbor_sampling"),
)
AT_RANDOM = "which sampled neighbours at random, where today's takes the first"
WHY = f"written for an older task, {AT_RANDOM}"
SLUGS = {
    **{1: "allreduce", 26: "moe_token_preprocess", 40: "ddp", 64: "gnn_neighbor_sampling"},
    **{36: "ulysses_gather_seq_scatter_heads", 37: "ulysses_gather_heads_scatter_seq"},
}


@pytest.fixture(scope="module")
def catalogue() -> dict[str, Problem]:
    text = (Path(settings.BASE_DIR) / "fixtures" / "problems.json").read_text()
    rows = [Problem(number=p["number"], slug=p["slug"]) for p in json.loads(text)["problems"]]
    return {str(row.number): row for row in rows} | {row.slug: row for row in rows}


@pytest.mark.parametrize(
    ("names", "marked"),
    [
        (OLDER, OLDER),
        ((*OLDER, "1_allreduce", "41_ddp"), OLDER),
        (TODAYS, ()),
        ((*TODAYS, "1_allreduce", "40_ddp", "12_allgather_gemm"), ()),
        (("26_moe_token_preprocess", "41_ddp"), ("26_moe_token_preprocess",)),
        (("26_moe_token_preprocess", "12_gemm_allgather"), ("26_moe_token_preprocess",)),
        (("26_moe_token_preprocess", "1_allreduce", "ddp"), ()),
        (("gnn_neighbor_sampling", "41_ddp"), ("gnn_neighbor_sampling",)),
        (("64_gnn_neighbor_sampling", "41_ddp"), ()),
    ],
)
@pytest.mark.parametrize("tree", [TREE, "solutions_triton"])
def test_a_tree_with_older_names_has_older_tasks(
    names: tuple[str, ...], marked: tuple[str, ...], tree: str, catalogue: dict[str, Problem]
) -> None:
    assert _marked(catalogue, *(f"{tree}/{name}" for name in names)) == {
        f"{tree}/{name}" for name in marked
    }


def test_what_is_of_no_tree_or_of_another_sample_is_of_today(catalogue: dict[str, Problem]) -> None:
    older = f"attempt_1/{TREE}/26_moe_token_preprocess"
    beside = (f"attempt_2/{TREE}/26_moe_token_preprocess", "mine/26_moe_token_preprocess")
    assert _marked(catalogue, older, f"attempt_1/{TREE}/41_ddp", *beside) == {older}


def _marked(catalogue: dict[str, Problem], *stems: str) -> set[str]:
    """Which of these files were written for another task than today's."""
    members = [Member(path=PurePosixPath(f"{stem}_cuda.py"), content=GOOD) for stem in stems]
    found = [from_member(member, 1) for member in members]
    tasks = older_tasks([(one, checked_problem(one, catalogue)) for one in found])
    return {stem for stem, task in zip(stems, tasks, strict=True) if task}


@pytest.fixture
def problems(db: None) -> dict[int, Problem]:
    found = {number: factory.make_problem(number, slug) for number, slug in SLUGS.items()}
    for problem in found.values():
        problem.payload["tolerances"]["bfloat16"] = {"atol": 3e-2, "rtol": 2e-2}
        problem.save()
    Hardware.objects.create(slug="h100x8", title="8 x H100", device="cuda", max_world_size=8)
    return found


def _tasks() -> dict[int, str]:
    return dict(Kernel.objects.values_list("problem_id", "older_task"))


@pytest.mark.usefixtures("problems")
def test_an_uploaded_tree_of_before_is_marked_and_judged(send: Send) -> None:
    files = {f"{TREE}/{name}_cuda.py": GOOD + name.encode() for name in (*OLDER, "41_ddp")}
    assert send({"harness": "zero-shot"}, make_zip(files)).status_code == 201
    tasks = _tasks()
    assert {number for number, task in tasks.items() if task} == {26, 36, 37, 64}
    assert tasks[64] == AT_RANDOM
    assert "lists" in tasks[26]
    assert "without a group" in tasks[36]
    assert Run.objects.queued().count() == 5


@pytest.mark.usefixtures("problems")
def test_an_uploaded_tree_of_today_is_not_marked(send: Send) -> None:
    files = {f"{TREE}/{name}_cuda.py": GOOD + name.encode() for name in (*TODAYS, "40_ddp")}
    assert send({"harness": "zero-shot"}, make_zip(files)).status_code == 201
    assert set(_tasks().values()) == {""}
    assert Kernel.objects.count() == 5


@pytest.mark.usefixtures("problems")
def test_the_command_that_imports_a_tree_says_so(tmp_path: Path) -> None:
    (tmp_path / TREE).mkdir()
    for name in ("65_gnn_neighbor_sampling", "41_ddp"):
        (tmp_path / TREE / f"{name}_cuda.py").write_bytes(GOOD + name.encode())
    out = io.StringIO()
    call_command("import_submission", tmp_path / TREE, "--harness=zero-shot", stdout=out)
    assert f"problem 64: {WHY}: not counted" in out.getvalue()
    assert _tasks() == {64: AT_RANDOM, 40: ""}


@pytest.fixture
def tree_reports() -> ModuleType:
    return script("reports_file")


def _published(problem: Problem, name: str, notes: str = "one") -> dict[str, Any]:
    """A line as benchmarks/reports_file.py makes it."""
    line = line_of(problem, notes=notes, model="GPT-5.5", vendor="OpenAI", baseline=False)
    place = {"repository": "github.com/a/b", "commit": "0" * 40, "path": f"{TREE}/{name}_cuda.py"}
    size = len(line["source"].encode())
    origin = {"digest": line["report"]["kernel_digest"], "size_bytes": size, **place}
    return {**line, "source": None, "origin": origin}


def _load(path: Path, *lines: dict[str, Any]) -> imported_reports.Loaded:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (loaded,) = imported_reports.load(path)
    assert loaded
    return loaded


def test_reports_of_a_published_tree_are_marked(
    problems: dict[int, Problem], tmp_path: Path
) -> None:
    ddp, split, sampling = (
        _published(problems[number], name)
        for number, name in ((40, "41_ddp"), (26, OLDER[0]), (64, OLDER[3]))
    )
    loaded = _load(tmp_path / "a.jsonl", split, sampling)
    assert (loaded.runs, loaded.older) == (2, 2)
    assert Submission.objects.get().trust == Trust.SELF_REPORTED
    assert not Summary.objects.exists()
    again = {**split, "judged_at": "2026-01-02T00:00:00+00:00"}
    assert _load(tmp_path / "b.jsonl", again).older == 1
    assert Submission.objects.get().trust == Trust.SELF_REPORTED
    assert _load(tmp_path / "c.jsonl", ddp, split, sampling).older == 0
    assert {number: bool(task) for number, task in _tasks().items()} == {
        26: True,
        64: True,
        40: False,
    }
    assert Submission.objects.get().trust == Trust.VERIFIED
    assert Summary.objects.get().problem_id == 40


def test_reports_of_another_commit_are_of_its_time(
    problems: dict[int, Problem], tmp_path: Path
) -> None:
    older, newer = _published(problems[40], "41_ddp"), _published(problems[26], OLDER[0])
    newer["origin"]["commit"] = "1" * 40
    assert _load(tmp_path / "a.jsonl", older, newer).older == 0


def test_lines_for_the_shipped_file_have_them_and_say_so(tree_reports: ModuleType) -> None:
    lines = [
        {"path": f"{TREE}/{name}_cuda.py", "beside": 0, "report": _report_of(name)}
        for name in (*OLDER, "41_ddp")
    ]
    (found,) = tree_reports.telling(lines).values()
    assert len(found) == 5
    notes = [line["notes"] for line in tree_reports.together([], map(_line, lines))]
    assert len(set(notes)) == 1
    assert "26, 36, 37 and 64 were written for an older form" in notes[0]
    assert "do not count" in notes[0]


def _report_of(name: str) -> dict[str, Any]:
    slug = name.partition("_")[2]
    return {
        **{"verdict": "ok", "cause": None, "problem": slug, "setting": {"profile": "hardened"}},
        "environment": {"hardware": "1 x NVIDIA H100 80GB HBM3"},
    }


def _line(told: dict[str, Any]) -> dict[str, Any]:
    origin = {"path": told["path"], "repository": "github.com/a/b"}
    return {"origin": origin, "job": {"profile": "hardened", "placement": "shared"}}
