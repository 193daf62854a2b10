"""The training set: whose kernels are in it, with what, and what its card says."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from leaderboard.models import Problem, Ruling, Submission, Transcript
from leaderboard.models.choices import Moderation
from leaderboard.publishing import training_set
from tests.leaderboard import factory
from tests.leaderboard.frozen import freeze, make_board, rows_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, settings: Any) -> None:
    settings.STATE_DIR = tmp_path


@pytest.fixture
def board() -> dict[str, Submission]:
    return make_board()


def told() -> list[dict[str, Any]]:
    return [dict(zip(training_set.KINDS, row, strict=True)) for row in training_set.rows()]


def test_nobody_is_in_it_who_did_not_say_so(board: dict[str, Submission]) -> None:
    assert told() == []
    assert "none yet" in training_set.card(1)
    Submission.objects.update(licence="MIT")
    found = told()
    assert {one["submission"] for one in found} == {board["fine"].pk}, "public and undisputed"
    assert {one["licence"] for one in found} == {"MIT"}
    assert {one["verdict"] for one in found} == {"ok", "output_mismatch"}
    assert all(one["source"].startswith("import") and one["counts"] for one in found)
    assert "`licence`: MIT" in training_set.card(1)


def test_a_snapshot_has_it_with_its_card(board: dict[str, Submission]) -> None:
    Submission.objects.filter(pk=board["fine"].pk).update(licence="CC0-1.0")
    folder = freeze()
    right = next(row for row in rows_of(folder, "training") if row["verdict"] == "ok")
    assert (right["speedup"], right["slug"]) == (2.0, "allreduce")
    assert "2 judgements of 2" in (folder / training_set.CARD).read_text()


def test_what_was_said_stands_beside_the_last_step(problem: Problem) -> None:
    made = factory.make_submission("Agent", "agentic")
    Submission.objects.filter(pk=made.pk).update(licence="MIT", step_budget=2)
    runs = []
    for step in (1, 2):
        source = f"{factory.SOURCE}# step {step}\n"
        run = factory.make_run(factory.make_kernel(made, problem, source=source, step=step))
        runs.append(factory.finish(run, factory.make_report(run)))
    packed = gzip.compress(b"hello")
    whose = {"submission": made, "problem": problem, "attempt": 1}
    Transcript.objects.create(**whose, packed=packed, size_bytes=5)
    found = {one["step"]: one["transcript"] for one in told()}
    assert (found[1], found[2]) == (None, "hello")
    Ruling.objects.create(run=runs[0], moderation=Moderation.INVALIDATED, reason="forged")
    assert {one["step"] for one in told()} == {2}
