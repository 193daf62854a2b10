"""Management commands: each safe to repeat, each clear about what it cannot do."""

from __future__ import annotations

import copy
import json
import subprocess
from contextlib import nullcontext
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from leaderboard.models import (
    ApiToken,
    AuditEntry,
    DataVersion,
    Hardware,
    LanguageModel,
    Problem,
    Publication,
    PublishedResult,
    Run,
    Scope,
    Submission,
    Summary,
)
from leaderboard.runs import catalogue, evaluation
from tests.leaderboard import factory
from tests.leaderboard.conftest import Bells
from tests.leaderboard.running import HELLO, claim, report_of, say_hello, worker_token

pytestmark = pytest.mark.server


def _say(*words: Any) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue().strip()


def _file(folder: Path, *problems: dict[str, Any], version: int = 1) -> str:
    path = folder / "problems.json"
    path.write_text(json.dumps({"version": version, "problems": problems}))
    return f"--file={path}"


@pytest.fixture
def entry() -> dict[str, Any]:
    """The first problem of the catalogue that is shipped, and is ranked from two ranks."""
    shipped = catalogue.read_file(catalogue.EXPORT)
    return copy.deepcopy(next(one for one in shipped if one["ranked_from"] == 2))


def test_the_shipped_catalogue_is_loaded_once(db: None) -> None:
    assert "new or changed" in _say("sync_problems")
    count = Problem.objects.count()
    assert count >= 16
    version = DataVersion.objects.current()
    assert _say("sync_problems") == f"{count} problems, 0 new or changed"
    assert DataVersion.objects.current() == version
    assert Hardware.objects.get().slug == "cpu"


def test_a_changed_problem_leaves_its_old_results_out(
    db: None, tmp_path: Path, entry: dict[str, Any]
) -> None:
    call_command("sync_problems", _file(tmp_path, entry))
    run = factory.make_run(factory.make_kernel(factory.make_submission(), Problem.objects.get()))
    factory.finish(run, factory.make_report(run))
    assert Summary.objects.count() == 1
    call_command("sync_problems", _file(tmp_path, {**entry, "digest": "0" * 64}))
    assert Summary.objects.count() == 0
    assert Run.objects.get().verdict == "ok"
    call_command("sync_problems", _file(tmp_path, entry))
    assert Summary.objects.count() == 1


def test_a_problem_that_is_gone_is_kept_and_no_longer_scored(
    db: None, tmp_path: Path, entry: dict[str, Any]
) -> None:
    call_command("sync_problems", _file(tmp_path, entry))
    assert _say("sync_problems", _file(tmp_path)) == "0 problems, 1 new or changed"
    assert Problem.objects.get().scored is False
    assert _say("sync_problems", _file(tmp_path)) == "0 problems, 0 new or changed"
    call_command("sync_problems", _file(tmp_path, entry))
    assert Problem.objects.get().scored is True


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("nonsense", "not a catalogue"), ("[]", "not a catalogue"), ("{}", "not a catalogue")],
)
def test_a_catalogue_that_is_none_is_refused(
    db: None, tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "problems.json"
    path.write_text(text)
    with pytest.raises(CommandError, match=complaint):
        call_command("sync_problems", f"--file={path}")
    with pytest.raises(CommandError, match="version 2"):
        call_command("sync_problems", _file(tmp_path, version=2))
    with pytest.raises(CommandError, match="lacks"):
        call_command("sync_problems", _file(tmp_path, {"number": 1}))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("sync_problems", f"--file={tmp_path / 'none'}")
    assert not Problem.objects.exists()


def test_published_claims_are_loaded_once_with_their_citation(db: None) -> None:
    first = _say("import_published")
    version = DataVersion.objects.current()
    assert _say("import_published") == first == "66 published claims"
    assert DataVersion.objects.current() == version
    assert "ParallelKernelBench" in Publication.objects.get().citation
    assert Publication.objects.get().date == "2026-06"
    claims = PublishedResult.objects.filter(model__name="GPT-5.5", category=None)
    total = claims.get(harness="zero-shot")
    assert (total.correct_at_1, total.correct_at_3) == (28, 36)
    assert (total.fast_at_1, total.fast_at_3) == (22, 27)
    agentic = PublishedResult.objects.get(harness="agentic")
    assert (agentic.model.name, agentic.correct_at_1, agentic.fast_at_1) == ("Gemini 3 Pro", 35, 26)
    slugs = LanguageModel.objects.values_list("slug", flat=True)
    assert sorted(slugs) == [
        "claude-opus-4-7", "deepseek-v4-pro", "gemini-3-pro", "glm-5-1", "gpt-5-5",
    ]  # fmt: skip


def test_published_categories_are_the_catalogues(db: None) -> None:
    call_command("sync_problems")
    call_command("import_published")
    claimed = set(PublishedResult.objects.values_list("category", flat=True))
    assert set(Problem.objects.values_list("category", flat=True)) <= claimed


def test_a_token_is_printed_and_works(db: None) -> None:
    text = _say("create_token", "--scope=submit", "--user=ada", "--days=2")
    token = ApiToken.objects.matching(text)
    assert token is not None
    assert token.owner is not None
    assert (token.scope, token.owner.username) == (Scope.SUBMIT, "ada")
    assert not token.owner.has_usable_password()
    assert token.expires_at is not None
    assert timedelta(days=1) < token.expires_at - timezone.now() <= timedelta(days=2)
    endless = ApiToken.objects.matching(
        _say("create_token", "--scope=read", "--user=ada", "--days=0")
    )
    assert endless is not None
    assert endless.expires_at is None
    bound = ("--queue=cpu", "--queue=h200x4", "--host=h1", "--groups=2")
    said = _say("create_token", "--scope=worker", *bound)
    worker = ApiToken.objects.matching(said)
    assert worker is not None
    assert (worker.owner, worker.queues, worker.hosts) == (None, ["cpu", "h200x4"], ["h1"])
    assert AuditEntry.objects.latest("pk").detail["groups"] == 2
    assert worker.expires_at is not None
    assert timedelta(days=89) < worker.expires_at - timezone.now() <= timedelta(days=90)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--scope=submit"], "--user"),
        (["--scope=worker", "--user=ada"], "--user"),
        (["--scope=worker"], "--queue"),
        (["--scope=read", "--user=ada", "--queue=cpu"], "--queue"),
    ],
)
def test_a_token_needs_what_its_scope_says_and_nothing_else(
    db: None, words: list[str], named: str
) -> None:
    with pytest.raises(CommandError, match=named):
        call_command("create_token", *words)
    assert not ApiToken.objects.exists()


def test_what_a_token_or_a_host_judged_is_invalidated(
    run: Run, problem: Problem, staff: User
) -> None:
    evaluation.finish(run.pk, claim(run, "taken").holding, report_of(run))
    other = factory.make_run(factory.make_kernel(factory.make_submission("Other"), problem))
    evaluation.finish(other.pk, claim(other, "h2", "second").holding, report_of(other))
    with pytest.raises(CommandError, match="not of the staff"):
        call_command("distrust", "--host=taken", "--staff=owner")
    with pytest.raises(CommandError, match="0 tokens"):
        call_command("distrust", "--token=pkb_", "--staff=staff")
    first = _say("distrust", "--host=taken", "--staff=staff", "--reason=Was taken over.")
    assert first == f"1 submissions are invalidated: [{run.kernel.submission_id}]"
    assert worker_token().revoked_at is None
    _say("distrust", f"--token={worker_token('second').prefix}", "--staff=staff")
    assert worker_token("second").revoked_at is not None
    reasons = Submission.objects.order_by("pk").values_list("moderation", "moderation_reason")
    assert [tuple(row) for row in reasons] == [
        ("invalidated", "Was taken over."),
        ("invalidated", "It was judged on a host that is no longer trusted."),
    ]
    assert not Summary.objects.ranked().exists()
    assert AuditEntry.objects.filter(action="moderate", actor=staff).count() == 2


def test_the_sweep_can_be_done_by_hand(run: Run, bells: Bells) -> None:

    say_hello(HELLO)
    Run.objects.update(rung_at=None)
    bells.clear()
    assert _say("sweep").splitlines() == ["rang for 1 runs", "sent 0 notices"]
    assert bells == [(run.id, "cpu")]


def test_the_summary_is_checked_and_mended(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    assert _say("rebuild_summary", "--check") == "the summary is right"
    Summary.objects.update(best_speedup=9.0)
    with pytest.raises(CommandError, match="expected"):
        call_command("rebuild_summary", "--check")
    assert _say("rebuild_summary") == "1 rows"
    assert _say("rebuild_summary", "--check") == "the summary is right"


@pytest.mark.parametrize(("status", "told"), [(0, None), (1, "problems that err"), (2, "its end")])
def test_the_audit_runs_apart_and_its_findings_are_loaded(
    db: None, monkeypatch: pytest.MonkeyPatch, status: int, told: str | None
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, status if "audit" in command else 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CommandError, match=told) if told else nullcontext():
        call_command("audit_problems", "allreduce", "--seeds=3", "--jobs=2")
    assert asked[0][1:] == ["-m", "problems", "audit", "allreduce", "--seeds", "3", "--jobs", "2"]
    assert len(asked) == (1 if status == 2 else 2)
    assert Problem.objects.exists() is (status != 2)
