"""From a command line a submission says of itself, and changes of it, what the site's forms can."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluator.client import arguments, owning, submitting
from leaderboard.api.inputs import EditIn, SubmissionIn
from leaderboard.models import Problem, Run, Submission, Visibility
from leaderboard.models.choices import LICENCES
from leaderboard.submissions import forms, teams
from tests.leaderboard import factory
from tests.leaderboard.test_client import ABOUT, Pkb, pkb, token  # noqa: F401  fixtures
from tests.leaderboard.withheld import MARK, SOURCE

FILE = "1_allreduce_pytorch.py"
LATER = (timezone.now() + timedelta(days=30)).strftime("%Y-%m-%dT00:00Z")


@pytest.fixture
def folder(problem: Problem, tmp_path: Path) -> Path:
    """A folder with one kernel."""
    made = tmp_path / "kernels"
    made.mkdir()
    (made / FILE).write_text(SOURCE)
    return made


@pytest.mark.django_db(transaction=True)
def test_a_withheld_source_is_published(
    folder: Path,
    pkb: Pkb,  # noqa: F811
    client: Any,
) -> None:
    assert pkb("submit", folder, *ABOUT, "--withhold-source").status == 0
    made = Submission.objects.get()
    run = Run.objects.select_related("kernel__problem").get()
    factory.finish(run, factory.make_report(run))
    assert (
        pkb("publish", made.pk).out == f"submission {made.pk}: public, accepted, source withheld\n"
    )
    refused = pkb("edit", made.pk, "--licence", "MIT", "--json")
    assert json.loads(refused.out)["error"]["code"] == "licence_of_withheld"
    assert MARK not in client.get(f"/kernels/{run.kernel.source_id}").content.decode()
    done = pkb("publish", made.pk, "--source")
    assert (done.status, done.out) == (0, f"submission {made.pk}: public, accepted\n"), done.err
    assert MARK in client.get(f"/kernels/{run.kernel.source_id}").content.decode()
    assert pkb("edit", made.pk, "--licence", "MIT").status == 0
    assert Submission.objects.get().licence == "MIT"
    assert pkb("publish", made.pk, "--source").status == 0, "as it is already"


@pytest.mark.django_db(transaction=True)
def test_what_a_submission_says_of_itself_is_changed(
    folder: Path,
    pkb: Pkb,  # noqa: F811
) -> None:
    about = ("--model", "GPT-5.5", "--harness", "agentic")
    assert pkb("submit", folder, *about, "--licence", "MIT", "--visibility", "private").status == 0
    made = Submission.objects.get()
    assert (made.licence, made.visibility) == ("MIT", "private")
    told = ("--step-budget", 20, "--cost-usd", 1.5, "--link", "https://a.example/", "--notes", "B.")
    dated = ("--visibility", "unlisted", "--public-from", LATER, "--licence", "CC0-1.0")
    assert pkb("edit", made.pk, *told, *dated).out == f"submission {made.pk}: unlisted, accepted\n"
    made.refresh_from_db()
    assert (made.step_budget, made.cost_usd, made.link) == (20, 1.5, "https://a.example/")
    assert (made.notes, made.licence) == ("B.", "CC0-1.0")
    assert made.public_from == datetime.fromisoformat(LATER).astimezone(UTC)
    untold = ("--step-budget", "none", "--cost-usd", "none", "--link", "none", "--licence", "none")
    assert pkb("edit", made.pk, *untold, "--public-from", "none", "--notes", "").status == 0
    made = Submission.objects.get()
    assert (made.step_budget, made.cost_usd, made.public_from) == (None, None, None)
    assert (made.link, made.licence, made.notes) == ("", "", "")
    assert pkb("edit", made.pk, "--cost-usd", "much").status == 3
    assert pkb("edit", made.pk).status == 2
    assert pkb("edit", made.pk, "--visibility", "public").status == 0
    run = Run.objects.select_related("kernel__problem").get()
    factory.finish(run, factory.make_report(run))
    assert "has been judged" in pkb("edit", made.pk, "--visibility", "private").err


@pytest.mark.django_db(transaction=True)
def test_another_changes_nothing(
    folder: Path,
    pkb: Pkb,  # noqa: F811
) -> None:
    made = factory.make_submission(owner="other")
    Submission.objects.filter(pk=made.pk).update(withholds_source=True)
    assert pkb("publish", made.pk, "--source").status == 3
    assert pkb("edit", made.pk, "--notes", "Mine.").status == 3
    made.refresh_from_db()
    assert (made.withholds_source, made.notes) == (True, "")


def _imported(folder: Path, *words: str) -> Submission:
    call_command("import_submission", str(folder), "--model=M", *words, stdout=io.StringIO())
    return Submission.objects.get()


def test_the_command_that_imports_says_all_of_it(folder: Path) -> None:
    teams.create(factory.make_user("owner"), "Acme")
    words = ("--harness=agentic", "--owner=owner", "--licence=MIT", "--step-budget=20")
    made = _imported(folder, *words, "--team=acme", f"--public-from={LATER}")
    assert (made.licence, made.step_budget, made.visibility) == ("MIT", 20, Visibility.PRIVATE)
    assert made.team is not None
    assert made.team.slug == "acme"
    assert made.public_from == datetime.fromisoformat(LATER)


def test_a_date_without_a_zone_is_of_utc(folder: Path) -> None:
    words = ("--harness=human", "--visibility=unlisted", f"--public-from={LATER[:-1]}")
    made = _imported(folder, *words)
    assert made.public_from == datetime.fromisoformat(LATER)
    assert made.visibility == Visibility.UNLISTED


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--licence=GPL",), "invalid choice"),
        (("--licence=MIT", "--withhold-source"), "cannot be trained on"),
        (("--public-from=soon",), "invalid _moment value|--public-from"),
        (("--step-budget=0",), "--step-budget"),
        (("--step-budget=5",), "Only an agentic harness"),
        (("--team=acme",), "no team"),
        (("--visibility=public", f"--public-from={LATER}"), "no embargo"),
    ],
)
def test_what_it_cannot_be_is_refused(folder: Path, words: tuple[str, ...], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        call_command("import_submission", str(folder), "--model=M", "--harness=human", *words)
    assert not Submission.objects.exists()


def test_the_client_has_what_the_site_takes() -> None:
    assert [name for name, _ in LICENCES] == list(arguments.LICENCES)
    assert sorted(arguments.VISIBILITIES) == sorted(Visibility.values)
    # A box of its own, that is never taken back: `publish --source`.
    assert {*owning.EDITABLE, "withholds_source"} == set(EditIn().fields)
    assert set(owning.EDITABLE) == set(forms.MetadataForm.base_fields)
    of_kernels = {*submitting.OF_ONE, "source", "archive", "upload"}
    assert {*submitting.FIELDS, *of_kernels} == set(SubmissionIn().fields)
