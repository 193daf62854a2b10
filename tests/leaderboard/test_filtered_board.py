"""What boards count of kernels that were judged, and what is left when they are narrowed."""

from __future__ import annotations

import csv
import io
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.profile import Evidence, Mechanism, Tag
from evaluator.messages.report import Verdict
from evaluator.messages.roofline_bounds import RooflineBounds
from leaderboard.models import (
    DataVersion,
    Hardware,
    Kernel,
    LanguageModel,
    Problem,
    Run,
    Submission,
    Summary,
    Trust,
)
from leaderboard.read_model import boards
from leaderboard.read_model.boards import Narrowing
from tests.leaderboard import factory

pytestmark = pytest.mark.server


def judged_with(
    submission: Submission, problem: Problem, tag: Tag, flags: tuple[str, ...] = ()
) -> Run:
    """A correct kernel that moves its bytes in this way."""
    mechanism = Mechanism(tag=tag, evidence=Evidence.SOURCE, detail="named")
    attempt = 1 + Kernel.objects.filter(submission=submission, problem=problem).count()
    source = f"{factory.SOURCE}# {submission.pk} {problem.number} {attempt}\n"
    run = factory.make_run(factory.make_kernel(submission, problem, source=source, attempt=attempt))
    floors = RooflineBounds(wire_us=10.0, hbm_us=5.0, flops_us=1.0, latency_us=2.0)
    found: dict[str, Any] = {"mechanisms": (mechanism,), "flags": flags, "floors": floors}
    return factory.finish(run, factory.make_report(run, speedup=2.0, **found))


def test_a_finished_run_says_what_bounds_it_and_how_it_moves_bytes(problem: Problem) -> None:
    run = judged_with(factory.make_submission(), problem, Tag.TMA)
    assert (run.bound_us, run.limiter, run.mechanisms) == (10.0, "wire", ["tma"])
    assert run.utilisation == pytest.approx(10.0 / 50.0)
    (entry,) = Summary.objects.get().attempts
    assert (entry["backend"], entry["kernel"]) == ("pytorch", run.kernel.source_id)
    assert (entry["low"], entry["utilisation"]) == (run.speedup_low, run.utilisation)


def test_a_failed_run_tells_of_no_utilisation(problem: Problem) -> None:
    run = factory.make_judged(factory.make_submission(), problem, Verdict.TIMEOUT)
    assert (run.bound_us, run.limiter, run.utilisation, run.mechanisms) == (None, None, None, [])
    (entry,) = Summary.objects.get().attempts
    assert (entry["low"], entry["utilisation"]) == (None, None)


@pytest.mark.parametrize(
    ("profile", "inputs"), [("hardened", "hidden inputs"), ("upstream", "PKB's own inputs")]
)
def test_a_board_says_on_which_inputs_it_is(
    profile: str, inputs: str, problem: Problem, client: Client
) -> None:
    factory.make_judged(factory.make_submission(), problem, profile=profile)
    text = unescape(client.get("/").content.decode())
    assert f"Every kernel was judged here on {inputs}." in text
    assert f"counts when its answer is correct on {inputs}" in text


def test_a_board_is_narrowed_by_what_kernels_do(problem: Problem) -> None:
    with_nccl, without = factory.make_submission("A"), factory.make_submission("B")
    judged_with(with_nccl, problem, Tag.NCCL)
    judged_with(without, problem, Tag.TMA)
    Submission.objects.filter(pk=with_nccl.pk).update(trust=Trust.SELF_REPORTED)
    LanguageModel.objects.filter(pk=without.model_id).update(is_baseline=True)
    (setting,) = boards.known_settings()
    everything = boards.judged(setting, 1)
    assert [(entry.model, entry.baseline) for entry in everything] == [("A", False), ("B", True)]
    assert everything[0].numbers["utilisation"] == pytest.approx(0.2)
    assert everything[0].backends == ("pytorch",)
    cases: tuple[tuple[Narrowing, list[str]], ...] = (
        ({"nccl_free": True}, ["B"]),
        ({"mechanism": "nccl"}, ["A", "B"]),
        ({"verified": True}, ["B"]),
        ({"backend": "cuda"}, ["B"]),
        ({"category": "tensor"}, ["A", "B"]),
        ({"category": "expert"}, []),
        ({"harness": "agentic"}, ["B"]),
        ({"submission": with_nccl.pk}, ["A"]),
    )
    for narrowing, left in cases:
        found = boards.judged(setting, 1, **narrowing)
        assert [entry.model for entry in found] == left, narrowing


def test_with_nccl_and_without_go_by_one_definition(problem: Problem) -> None:
    """A flag goes by a word in the source, which may be in a comment: it does not decide."""
    named, used = factory.make_submission("Named"), factory.make_submission("Used")
    judged_with(named, problem, Tag.TMA, ("uses_nccl",))
    judged_with(used, problem, Tag.NCCL)
    (setting,) = boards.known_settings()
    found = {
        entry.model: entry.score.correct
        for narrowing in (Narrowing(nccl_free=True), Narrowing(mechanism="nccl"))
        for entry in boards.judged(setting, 1, **narrowing)
    }
    assert found == {"Named": 1, "Used": 1}
    (without,) = boards.judged(setting, 1, nccl_free=True)
    assert without.model == "Named"
    assert [cell.nccl for cell in without.cells] == [False]


@pytest.mark.parametrize(
    "narrowing", [{}, {"category": "tensor"}, {"nccl_free": True}, {"mechanism": "tma"}]
)
def test_marks_and_letters_say_what_the_cells_say(narrowing: Narrowing, problem: Problem) -> None:
    other = factory.make_problem(2, "gemm", "expert")
    submission = factory.make_submission("A", k=2)
    for tag in (Tag.TMA, Tag.NCCL):
        judged_with(submission, problem, tag)
    factory.make_judged(submission, other, Verdict.TIMEOUT)
    (setting,) = boards.known_settings()
    (entry,) = boards.alone(boards.judged(setting, 2, ahead=("solved",), **narrowing))
    cells = {cell.problem: cell for cell in entry.cells}
    assert cells
    assert [tuple(mark) for mark in entry.marks if mark.problem in cells] == [
        (cell.problem, cell.best_speedup, cell.best_low, cell.mode) for cell in cells.values()
    ]
    for number, cell in cells.items():
        assert entry.solved[number] == ("1" if cell.correct else "0")


def test_a_board_asks_three_times_however_many_rows_and_cells_it_has(problem: Problem) -> None:
    for name in "ABCD":
        factory.make_judged(factory.make_submission(name), problem)
    (setting,) = boards.known_settings()
    with CaptureQueriesContext(connection) as queries:
        entries = boards.judged(setting, 1)
        assert all(entry.cells and entry.results for entry in entries)
    assert (len(entries), len(queries)) == (4, 3)


def test_a_class_of_hardware_without_results_has_a_board(problem: Problem, client: Client) -> None:
    factory.make_judged(factory.make_submission(), problem)
    Hardware.objects.create(slug="h200x2", title="2 x H200", device="cuda", max_world_size=2)
    page = client.get("/?hardware=h200x2")
    assert page.status_code == 200
    assert "Nothing was judged under all of these at once." in page.text
    assert client.get("/?hardware=abacus").status_code == 400


def test_a_baseline_says_that_a_filter_leaves_all_of_it(problem: Problem, client: Client) -> None:
    judged_with(factory.make_submission("A"), problem, Tag.TMA)
    own = factory.make_submission("B")
    judged_with(own, problem, Tag.NCCL)
    LanguageModel.objects.filter(pk=own.model_id).update(is_baseline=True)
    DataVersion.objects.bump()
    for address, label in (("", False), ("?mechanism=tma", True), ("?harness=zero-shot", True)):
        assert ("not filtered" in client.get(f"/{address}").text) is label, address
        assert ("not filtered" in client.get(f"/matrix{address}").text) is label, address
        for page in ("leaderboard", "matrix"):
            rows = list(csv.DictReader(io.StringIO(client.get(f"/{page}.csv{address}").text)))
            marked = {row["model"]: row["unfiltered"] for row in rows}
            assert marked == {"A": "False", "B": str(label)}, (page, address)
