"""The site's own kernels are one submission, which reports of them find by digest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from evaluator.messages.job import Backend, Job
from leaderboard.models import Kernel, Problem, Run, Submission
from leaderboard.models.model_names import HOUSE
from leaderboard.runs import house_kernels, imported_reports
from tests.leaderboard import factory
from tests.leaderboard.running import unsaved
from tests.leaderboard.test_import_reports import PRODUCER

OWN = house_kernels.FILES / "1_allreduce_triton.py"


def _line(problem: Problem, source: str, judged_at: str) -> dict[str, Any]:
    report = factory.make_report(unsaved(problem, source))
    job = Job(problem=problem.slug, source=source, backend=Backend.TRITON)
    line: dict[str, Any] = PRODUCER.line(PRODUCER.HOUSE, 1, job, report)
    return {**line, "judged_at": judged_at}


def _import(path: Path, *lines: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    call_command("import_reports", str(path))


def test_they_are_stored_once_and_grow_by_steps(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    owner = imported_reports.owner().pk
    assert house_kernels.load(owner) == 1
    assert house_kernels.load(owner) == 0
    submission = Submission.objects.get()
    assert (submission.model.name, submission.model.is_baseline) == ("House kernels", True)
    assert (submission.harness, submission.visibility) == ("human", "public")
    assert Kernel.objects.get().source.text == OWN.read_text()
    monkeypatch.setattr(house_kernels, "FILES", tmp_path)
    (tmp_path / OWN.name).write_text(OWN.read_text() + "# another\n")
    assert house_kernels.load(owner) == 1
    assert list(Kernel.objects.order_by("step").values_list("attempt", "step")) == [(1, 1), (1, 2)]


def test_reports_in_many_files_are_of_that_submission(problem: Problem, tmp_path: Path) -> None:
    first = _line(problem, OWN.read_text(), "2026-11-24T10:00:00+00:00")
    later = _line(problem, OWN.read_text(), "2026-11-24T11:00:00+00:00")
    _import(tmp_path / "a.jsonl", first)
    _import(tmp_path / "b.jsonl", first, later)
    _import(tmp_path / "c.jsonl", later)
    assert Submission.objects.get().trust == "verified"
    assert Run.objects.count() == 2
    assert set(Run.objects.values_list("kernel__submission__model__slug", flat=True)) == {HOUSE}


def test_a_report_of_another_source_is_refused(problem: Problem, tmp_path: Path) -> None:
    other = _line(problem, factory.SOURCE, "2026-11-24T10:00:00+00:00")
    with pytest.raises(CommandError, match="no kernel of fixtures/house has this source"):
        _import(tmp_path / "a.jsonl", other)
    assert not Run.objects.exists()


def test_boards_mark_them_and_give_no_place(
    client: Client, problem: Problem, tmp_path: Path
) -> None:
    _import(tmp_path / "a.jsonl", _line(problem, OWN.read_text(), "2026-11-24T10:00:00+00:00"))
    page = client.get("/").content.decode()
    row = page[page.index("House kernels") :]
    assert row.index("<small>written by hand, this site</small>") < row.index("</tr>")
    (record,) = client.get("/leaderboard.json").json()["rows"]
    assert (record["baseline"], record["place"]) == (True, None)


def test_each_problem_says_where_one_learns_to_write_it(client: Client, problem: Problem) -> None:
    page = client.get(f"/problems/{problem.number}-{problem.slug}").content.decode()
    assert 'How would one write this? <a href="/beats-nccl">' in page
    said = client.get("/beats-nccl").content.decode()
    assert '<li><a href="#calls-back-to-back">' in said
    assert '<h2 id="calls-back-to-back">' in said
    assert '<td class="num">' in said
    assert "style=" not in said
    assert 'href="..' not in said
    assert client.get("/beats-nccl.json").json()["markdown"].startswith("# House kernels")
