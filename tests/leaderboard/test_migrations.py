"""Rows of an older site keep what they told, and tell what is asked of them now."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from evaluator.messages.profile import Evidence, Mechanism, Tag
from evaluator.messages.report import Verdict
from evaluator.messages.roofline_bounds import RooflineBounds
from leaderboard.models import (
    DataVersion,
    LanguageModel,
    LeaderboardRow,
    Problem,
    ProblemAggregate,
    Run,
    Summary,
    summaries,
)
from leaderboard.models.catalogue import SUMMARY_FORMAT, OutdatedSummaryError
from tests.leaderboard import factory

pytestmark = pytest.mark.server

FOLDER = Path(summaries.__file__).parent.parent / "migrations"
BEFORE = [("leaderboard", "0003_decline")]
PACKED = [("leaderboard", "0019_packed_parts")]
TWO_NAMES = [("leaderboard", "0026_withheld_sources")]
OLD_ENTRY = ("attempt", "run", "verdict", "cause", "speedup")
FLOORS = RooflineBounds(wire_us=7.0, hbm_us=3.0, flops_us=1.0, latency_us=2.0)
TMA = Mechanism(tag=Tag.TMA, evidence=Evidence.SASS, detail="UTMALDG")


@pytest.fixture
def newest(transactional_db: None) -> Iterator[None]:
    """The database ends as it began, whatever the test did."""
    yield
    call_command("migrate", verbosity=0)


@pytest.mark.usefixtures("newest")
def test_results_of_before_are_carried_over(problem: Problem) -> None:
    submission = factory.make_submission(k=2)
    run = factory.make_run(factory.make_kernel(submission, problem))
    found: dict[str, Any] = {"floors": FLOORS, "mechanisms": (TMA, TMA), "flags": ("uses_nccl",)}
    factory.finish(run, factory.make_report(run, **found))
    factory.make_judged(submission, problem, Verdict.TIMEOUT)
    expected = _stored()
    assert expected["runs"][0]["utilisation"] == pytest.approx(7.0 * 1.3 / 100)

    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    old = executor.loader.project_state(BEFORE).apps.get_model("leaderboard", "Summary")
    for row in old.objects.all():
        row.attempts = [{name: entry[name] for name in OLD_ENTRY} for entry in row.attempts]
        row.save()
    call_command("migrate", verbosity=0)
    assert _stored() == expected
    with pytest.raises(DatabaseError, match="append-only"):
        Run.objects.update(message="")


@pytest.mark.usefixtures("newest")
def test_packed_rows_are_made_anew_of_the_runs(problem: Problem) -> None:
    fast, slow = factory.make_submission("Fast", k=2), factory.make_submission("Slow")
    factory.make_judged(fast, problem, speedup=2.0)
    factory.make_judged(slow, problem, Verdict.TIMEOUT)
    factory.make_judged(slow, factory.make_problem(2, "p2", "data"))
    expected = _stored()
    executor = MigrationExecutor(connection)
    executor.migrate(PACKED)
    apps = executor.loader.project_state(PACKED).apps
    apps.get_model("leaderboard", "Standing").objects.create(
        submission_id=fast.pk,
        hardware_id="cpu",
        **{name: factory.SETTING[name] for name in ("world_size", "size", "dtype", "profile")},
        **{"judge_version": "0", "attempted": 1, "made": 1, "total": "[[", "by_category": "{}"},
        **{"solved": "", "cells": "", "kernels": "", "outcomes": ""},
        **{"by_threshold": b"", "speedups": b""},
    )
    version = DataVersion.objects.values_list("number", flat=True).get()
    call_command("migrate", verbosity=0)
    assert _stored() == expected
    assert DataVersion.objects.current() == version + 1
    call_command("migrate", verbosity=0)
    assert DataVersion.objects.current() == version + 1


@pytest.mark.parametrize("form", ["/", "/matrix", "/problems.json", "/leaderboard.csv"])
def test_rows_in_another_format_are_refused_until_they_are_made_anew(
    form: str, run: Run, client: Client
) -> None:
    factory.finish(run, factory.make_report(run))
    before = client.get(form).content
    for found in (SUMMARY_FORMAT - 1, SUMMARY_FORMAT + 1):
        DataVersion.objects.update(summary_format=found)
        with pytest.raises(OutdatedSummaryError, match=f"format {found}.*rebuild_summary"):
            client.get(form)
    call_command("rebuild_summary", verbosity=0)
    assert client.get(form).content == before


@pytest.mark.django_db
def test_a_summary_that_a_catalogue_left_unmade_is_made_by_the_next_call(client: Client) -> None:
    call_command("sync_problems", verbosity=0)
    DataVersion.objects.outdate_summary()
    assert client.get("/").status_code == 200
    call_command("sync_problems", verbosity=0)
    assert DataVersion.objects.get().summary_format == SUMMARY_FORMAT


@pytest.mark.usefixtures("newest")
@pytest.mark.parametrize("has_both", [True, False])
def test_a_preview_becomes_the_model_that_it_is(problem: Problem, has_both: bool) -> None:
    submission = factory.make_submission()
    if has_both:
        LanguageModel.objects.create(slug="gemini-3-pro", name="Gemini 3 Pro", vendor="Google")
    executor = MigrationExecutor(connection)
    executor.migrate(TWO_NAMES)
    old = executor.loader.project_state(TWO_NAMES).apps.get_model("leaderboard", "LanguageModel")
    old.objects.filter(pk=submission.model_id).update(
        slug="gemini-3-pro-preview", name="gemini-3-pro-preview"
    )
    call_command("migrate", verbosity=0)
    submission.refresh_from_db()
    assert (submission.model.slug, submission.model.name) == ("gemini-3-pro", "Gemini 3 Pro")
    assert not LanguageModel.objects.filter(slug="gemini-3-pro-preview").exists()


def test_migrations_use_no_code_that_may_change() -> None:
    for path in sorted(FOLDER.glob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = [one.module or "" for one in nodes if isinstance(one, ast.ImportFrom)]
        names += [name.name for one in nodes if isinstance(one, ast.Import) for name in one.names]
        ours = {name for name in names if name.split(".")[0] in ("leaderboard", "evaluator")}
        assert ours <= {"leaderboard.migrations._append_only"}, path.name


def _stored() -> dict[str, list[Any]]:
    kinds = (Summary, LeaderboardRow, ProblemAggregate)
    made = {
        kind.__name__: [
            {name: value for name, value in row.items() if name != "id"}
            for row in kind._default_manager.values()
        ]
        for kind in kinds
    }
    return {"runs": [dict(row) for row in Run.objects.order_by("created_at").values()], **made}
