"""The form that hands kernels in: hardware says the device, and a licence is the owner's word."""

from __future__ import annotations

import html
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from leaderboard.models import Hardware, Kernel, Problem, Run, Submission
from tests.leaderboard import factory
from tests.leaderboard.uploads import GOOD, NAME, ONE, Send, make_zip

pytestmark = pytest.mark.django_db
FORM = {"model": "New Model", "harness": "zero-shot", "visibility": "public", "key": "one"}
KERNEL = {"problem": "1", "backend": "pytorch", "source": "def solution(x):\n    return x\n"}


@pytest.fixture
def gpus(problem: Problem, client: Client) -> Hardware:
    """Two GPUs, where four is what is judged on as a rule; the owner is logged in."""
    problem.payload["tolerances"]["bfloat16"] = {"atol": 3e-2, "rtol": 2e-2}
    problem.save()
    factory.make_run(factory.make_kernel(factory.make_submission(), problem))
    client.force_login(factory.make_user("owner"))
    facts = {"title": "2 x H100", "device": "cuda", "max_world_size": 2}
    return Hardware.objects.create(slug="h100x2", **facts)


def test_a_pytorch_kernel_goes_to_gpus_where_these_are_chosen(
    gpus: Hardware, client: Client
) -> None:
    answer = client.post("/submit", FORM | KERNEL | {"hardware": gpus.slug})
    assert answer.status_code == 302, answer.content.decode()
    run = Run.objects.get(hardware=gpus)
    assert (run.device, run.world_size, run.size, run.dtype) == ("cuda", 2, "standard", "bfloat16")


def test_what_does_not_go_with_a_backend_is_said_at_the_hardware(
    gpus: Hardware, client: Client
) -> None:
    wrong = {"backend": "triton", "hardware": "cpu"}
    page = client.post("/submit", FORM | KERNEL | wrong).content.decode()
    assert '<ul class="errors" id="id_hardware_error"><li>One of: h100x2.' in page


def test_a_form_without_source_and_archive_says_so_at_both(gpus: Hardware, client: Client) -> None:
    page = client.post("/submit", FORM | KERNEL | {"source": ""}).content.decode()
    for name in ("source", "archive"):
        assert f'<ul class="errors" id="id_{name}_error"><li>Give either' in page


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def test_four_things_are_asked_first_and_the_rest_behind_more(
    gpus: Hardware, client: Client
) -> None:
    page = client.get("/submit").content.decode()
    first, more = page.split('<details class="more">')
    asked = re.findall(r'<(?:input|select|textarea)[^>]* name="(\w+)"', first)
    assert asked[-5:] == ["model", "problem", "source", "backend", "archive"]
    behind = re.findall(r'<(?:input|select|textarea)[^>]* name="(\w+)"', more)
    assert len(behind) == 19
    assert "An archive holds all 87 problems: one upload, one submission" in text_of(first)
    wrong = client.post("/submit", FORM | KERNEL | {"step_budget": "20"}).content.decode()
    assert '<details class="more" open>' in wrong


def test_a_form_begins_with_what_the_last_submission_said(gpus: Hardware, client: Client) -> None:
    told = {"harness": "agentic", "step_budget": "30", "visibility": "unlisted", "licence": "MIT"}
    assert client.post("/submit", FORM | KERNEL | told).status_code == 302
    page = client.get("/submit").content.decode()
    assert "More agentic, unlisted, fewest ranks" in text_of(page)
    assert 'name="step_budget" value="30"' in page
    assert '<option value="MIT" selected>' in page
    client.force_login(factory.make_user("another"))
    assert "More zero-shot, public, fewest ranks" in text_of(client.get("/submit").content.decode())


def test_the_backend_is_the_one_found_in_the_source(gpus: Hardware, client: Client) -> None:
    source = "import triton\n\n\n@triton.jit\ndef f(x): ...\n\n\ndef solution(x): ...\n"
    for text, backend in ((KERNEL["source"], "pytorch"), (source, "triton")):
        told = {**KERNEL, "source": text, "backend": "", "key": backend}
        assert client.post("/submit", FORM | told).status_code == 302
        assert Kernel.objects.latest("pk").backend == backend


def test_all_faults_of_a_form_stand_beside_their_fields(gpus: Hardware, client: Client) -> None:
    wrong = {
        **{"model": "!!", "source": "x = 1", "attempt": "0", "cost_usd": "-1", "link": "ftp://x"},
        **{"step_budget": "5", "world_size": "3", "size": "huge"},
    }
    page = client.post("/submit", FORM | KERNEL | wrong).content.decode()
    named = set(re.findall(r'<ul class="errors" id="id_(\w+)_error">', page))
    assert named >= {"model", "source", "attempt", "cost_usd", "link", "step_budget", "size"}
    assert Submission.objects.filter(model__name="!!").count() == 0


def test_faults_of_an_archive_stand_beside_it_with_those_of_fields(
    gpus: Hardware, client: Client
) -> None:
    archive = SimpleUploadedFile("kernels.zip", make_zip({f"../{NAME}": GOOD, "2_x.py": GOOD}))
    answer = client.post("/submit", FORM | {"archive": archive, "cost_usd": "much"})
    assert answer.status_code == 400
    page = text_of(answer.content.decode())
    assert f"../{NAME} is not a path inside the archive." in page
    assert "2_x.py is not called" in page
    assert "Enter a number." in page


def test_after_an_archive_one_lands_on_the_submission(gpus: Hardware, client: Client) -> None:
    archive = SimpleUploadedFile("kernels.zip", make_zip({NAME: GOOD}))
    answer = client.post("/submit", FORM | {"archive": archive})
    made = Submission.objects.get(model__name="New Model")
    assert answer["Location"] == made.get_absolute_url()
    alone = client.post("/submit", FORM | KERNEL | {"key": "two"})
    assert alone["Location"].startswith("/runs/")


def test_the_form_says_what_is_practice_before_it_is_sent(gpus: Hardware, client: Client) -> None:
    assert "not scored" not in client.get("/submit").content.decode()
    Problem.objects.update(ranked_from=4)
    page = text_of(client.get("/submit").content.decode())
    assert "No GPU host judges now. Kernels for GPUs wait for one." in page
    assert "so there they are practice: not scored : 1." in page
    assert "Problem allreduce (scored from 4 ranks)" in page


def test_the_form_tells_of_every_queue(gpus: Hardware, client: Client) -> None:
    page = client.get("/submit").content.decode()
    assert "2 x H100, no host now</option>" in page
    assert "is read from its source" in page
    assert "and a single source without <code>solution</code>" in page, "is refused, as well"


def test_a_licence_is_given_and_taken_back(gpus: Hardware, client: Client) -> None:
    assert client.post("/submit", FORM | KERNEL).status_code == 302
    made = Submission.objects.get(model__name="New Model")
    assert made.licence == "", "as a rule nobody may"
    told = {"visibility": "public", "licence": "MIT"}
    assert client.post(f"/submissions/{made.pk}/edit", told).status_code == 302
    assert "under MIT" in client.get(f"/submissions/{made.pk}").content.decode()
    assert client.get(f"/submissions/{made.pk}.json").json()["licence"] == "MIT"
    assert client.post(f"/submissions/{made.pk}/edit", told | {"licence": "x"}).status_code == 400
    assert client.post(f"/submissions/{made.pk}/edit", told | {"licence": ""}).status_code == 302
    made.refresh_from_db()
    assert made.licence == ""


def test_the_api_takes_a_licence_that_it_knows(send: Send) -> None:
    number = send({**ONE, "licence": "CC0-1.0"}).data["submission"]
    assert Submission.objects.get(pk=number).licence == "CC0-1.0"
    assert send({**ONE, "licence": "mine"}).status_code == 400


def test_a_model_tells_its_history_and_how_to_cite_it(problem: Problem, client: Client) -> None:
    for speedup in (1.5, 2.0):
        made = factory.make_submission("Model One")
        factory.make_judged(made, problem, speedup=speedup)
    page = client.get(f"/models/{made.model.slug}").content.decode()
    assert '<h2 id="history">' in page
    assert page.count("1 of 1 problems tried are solved") == 2
    assert "Cite this page" in page
    for name in ("model-categories", "model-curve"):
        assert f"/figures/{name}" in page
        drawn = client.get(f"/figures/{name}.json?model={made.model.slug}").json()
        assert len(drawn["data"]) == 2
