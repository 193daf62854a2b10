"""What becomes of a file with the reports of a published tree, which grows as more is judged."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from evaluator import Verdict
from leaderboard.models import Kernel, Problem, Run, Submission, Summary
from leaderboard.runs import imported_reports
from tests.leaderboard import factory
from tests.leaderboard.test_import_reports import PRODUCER, line_of
from tooling import headings
from tooling.screenshots import PAGES


def _published(problem: Problem, verdict: Verdict, when: str, notes: str) -> dict[str, Any]:
    line = line_of(problem, verdict, judged_at=when, notes=notes, model="GPT-5.5", vendor="OpenAI")
    place = {"repository": "github.com/a/b", "commit": "0" * 40, "path": f"t/{problem.number}.py"}
    size = len(line["source"].encode())
    origin = {"digest": line["report"]["kernel_digest"], "size_bytes": size, **place}
    return {**line, "baseline": False, "source": None, "origin": origin}


def _load(path: Path, *lines: dict[str, Any]) -> int:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (loaded,) = imported_reports.load(path)
    return loaded.runs if loaded else 0


def test_a_tree_of_which_more_is_judged_stays_one_submission(
    problem: Problem, tmp_path: Path
) -> None:
    second = factory.make_problem(2, "allgather")
    before = _published(problem, Verdict.OK, "2026-10-25T08:00:00+00:00", "1 file")
    again = _published(problem, Verdict.OK, "2026-10-26T08:00:00+00:00", "2 files")
    more = _published(second, Verdict.OUTPUT_MISMATCH, "2026-10-26T09:00:00+00:00", "2 files")
    assert _load(tmp_path / "before.jsonl", before) == 1
    assert _load(tmp_path / "after.jsonl", {**before, "notes": "2 files"}, again, more) == 2
    submission = Submission.objects.get()
    assert (submission.notes, Kernel.objects.count(), Run.objects.count()) == ("2 files", 2, 3)
    verdicts = Summary.objects.ranked().values_list("problem_id", "made", "correct")
    assert sorted(verdicts) == [(1, 1, 1), (2, 1, 0)]


@pytest.mark.server
def test_the_shipped_files_are_fine_and_look_as_in_the_pictures(db: None, client: Client) -> None:
    for command in ("sync_problems", "import_published", "import_reports"):
        call_command(command, stdout=StringIO())
    lines = list(PRODUCER.read(imported_reports.SHIPPED.glob("*.jsonl.gz")))
    assert Run.objects.count() == len(lines)
    assert Submission.objects.count() >= len({line["notes"] for line in lines})
    pictures = headings.known()
    assert {name: list(pages) for name, pages in pictures.items()} == {
        name: [path] for name, path in PAGES.items()
    }
    for name, pages in pictures.items():
        for path, then in pages.items():
            now = headings.of_page(client.get(path).text)
            assert now == then, f"docs/images/{name}.png shows an older page: make screenshots"
