"""One model has one page, whatever a tree, an upload or an address calls it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from leaderboard.models import LanguageModel, Problem, Submission
from leaderboard.models.model_names import aliases, known_as, model_slug
from leaderboard.submissions import published_results
from tests.leaderboard import factory
from tests.leaderboard.uploads import GOOD, NAME, ONE, Send

pytestmark = pytest.mark.django_db
OTHER, SHOWN, SLUG = "gemini-3-pro-preview", "Gemini 3 Pro", "gemini-3-pro"


def only() -> LanguageModel:
    return Submission.objects.get().model


def test_other_names_are_none_of_those_shown() -> None:
    assert aliases()[OTHER] == SHOWN
    assert not set(aliases()) & {model_slug(shown) for shown in aliases().values()}
    assert known_as("Gemini-3-Pro-Preview") == SHOWN
    assert known_as("gemini-3-flash") == "gemini-3-flash"


def test_an_upload_is_the_published_models(send: Send, problem: Problem) -> None:
    published_results.load()
    claimed = LanguageModel.objects.get(slug=SLUG)
    answer = send({**ONE, "model": OTHER, "vendor": "Google", "notes": "Mine."})
    assert answer.status_code == 201, answer.json()
    assert only() == claimed
    assert Submission.objects.get().notes == f"Mine.\n\nHanded in as {OTHER}."


def test_the_form_knows_other_names(owner: User, client: Client, problem: Problem) -> None:
    client.force_login(owner)
    form = {"model": OTHER, "harness": "zero-shot", "visibility": "public", "key": "one"}
    kernel = {"problem": "1", "backend": "pytorch", "source": GOOD.decode()}
    assert client.post("/submit", {**form, **kernel}).status_code == 302
    assert (only().name, only().slug) == (SHOWN, SLUG)


def test_a_folder_of_a_tree_knows_other_names(problem: Problem, tmp_path: Path) -> None:
    folder = tmp_path / f"solutions_pytorch_bf16_h100_8_google_{OTHER}"
    folder.mkdir()
    (folder / NAME).write_bytes(GOOD)
    command = ("import_submission", folder, "--harness=zero-shot", "--without-runs")
    call_command(*command, stdout=io.StringIO())
    assert (only().name, only().vendor) == (SHOWN, "Google")


def test_addresses_of_other_names_lead_to_the_model(client: Client, problem: Problem) -> None:
    assert client.get(f"/models/{OTHER}").status_code == 404
    submission = factory.make_submission(model=SHOWN)
    LanguageModel.objects.update(slug=SLUG)
    factory.make_judged(submission, problem)
    for form in ("", ".json", ".csv"):
        led = client.get(f"/models/{OTHER}{form}?sort=x")
        assert (led.status_code, led["Location"]) == (301, f"/models/{SLUG}{form}?sort=x")
    assert SHOWN in client.get(f"/models/{SLUG}").content.decode()
    assert client.get("/models/gemini-2-pro").status_code == 404
    assert SHOWN in client.get(f"/badges/models/{OTHER}.svg").content.decode()
    figure = client.get(f"/figures/model-failures.json?model={OTHER}")
    assert figure.status_code == 200
    found = client.get("/search.json?q=gemini-3-pro-preview").json()
    assert SHOWN in str(found) or f"/models/{SLUG}" in str(found)
