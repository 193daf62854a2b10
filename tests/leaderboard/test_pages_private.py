"""Who may see what: owner, another user, staff and the public."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from leaderboard.models import (
    ApiToken,
    DataVersion,
    Hardware,
    Kernel,
    Run,
    Scope,
    Submission,
    Visibility,
)
from tests.leaderboard import factory
from tests.leaderboard.uploads import GOOD, make_zip

pytestmark = pytest.mark.django_db


@pytest.fixture
def private_run() -> Run:
    submission = factory.make_submission("Secret Model", visibility=Visibility.PRIVATE)
    return factory.make_judged(submission, factory.make_problem(), speedup=3.0)


def addresses(run: Run) -> list[str]:
    return [
        f"/runs/{run.id}",
        f"/runs/{run.id}.json",
        f"/kernels/{run.kernel.source_id}",
        f"/submissions/{run.kernel.submission.address}",
        f"/figures/bursts.json?run={run.id}",
        f"/figures/bursts?run={run.id}",
        f"/figures/speedups?submission={run.kernel.submission.address}",
        f"/figures/speedups.json?submission={run.kernel.submission.address}",
    ]


@pytest.mark.parametrize(
    ("viewer", "status"), [(None, 404), ("other", 404), ("owner", 200), ("staff", 200)]
)
def test_a_private_submission_is_for_its_owner_and_staff(
    viewer: str | None, status: int, private_run: Run, client: Client
) -> None:
    if viewer:
        make = factory.make_staff if viewer == "staff" else factory.make_user
        client.force_login(make(viewer))
    for address in addresses(private_run):
        response = client.get(address)
        assert response.status_code == status, address
        if status == 200:
            assert response["Cache-Control"] == "private, no-store"


def test_a_private_page_is_not_kept_for_the_next_reader(private_run: Run) -> None:
    owner, stranger = Client(), Client()
    owner.force_login(factory.make_user("owner"))
    for address in addresses(private_run):
        assert owner.get(address).status_code == 200
        assert stranger.get(address).status_code == 404


@pytest.mark.parametrize("visibility", [Visibility.PUBLIC, Visibility.UNLISTED])
def test_search_engines_are_asked_to_leave_out_what_is_unlisted(
    visibility: Visibility, client: Client
) -> None:
    submission = factory.make_submission("Shy Model", visibility=visibility)
    run = factory.make_judged(submission, factory.make_problem())
    for address in (addresses(run)[i] for i in (0, 2, 3, 5, 6)):
        is_asked = '<meta name="robots" content="noindex">' in client.get(address).content.decode()
        assert is_asked is (visibility is Visibility.UNLISTED), address


def test_lists_do_not_give_a_private_submission_away(private_run: Run, client: Client) -> None:
    for address in ("/", "/leaderboard.json", "/status", "/problems/1-allreduce", "/categories"):
        assert "Secret Model" not in client.get(address).content.decode(), address
    assert client.get(f"/models/{private_run.kernel.submission.model.slug}").status_code == 404
    assert "Problem allreduce" not in client.get("/status.json").content.decode()


def test_an_unlisted_submission_leads_nowhere_that_is_not_there(
    client: Client, settings: Any
) -> None:
    settings.WHITENOISE_USE_FINDERS = True
    hidden = factory.make_submission("Hidden Model", visibility=Visibility.UNLISTED)
    factory.make_judged(hidden, factory.make_problem())
    text = client.get(f"/submissions/{hidden.address}").content.decode()
    links = set(re.findall(r'href="(/[^"#]*)', text)) - {
        "/account",
        "/submit",
        f"/complain/submission/{hidden.address}",
    }
    assert f"/kernels/{hidden.kernels.get().source_id}" in {one.partition("?")[0] for one in links}
    for link in links:
        assert client.get(html.unescape(link)).status_code == 200, link


def test_an_unlisted_submission_is_reachable_and_not_listed(client: Client) -> None:
    hidden = factory.make_submission("Hidden Model", visibility=Visibility.UNLISTED)
    run = factory.make_judged(hidden, factory.make_problem())
    assert client.get(f"/submissions/{hidden.address}").status_code == 200
    assert client.get(f"/runs/{run.id}").status_code == 200
    assert "Hidden Model" not in client.get("/").content.decode()


@pytest.mark.parametrize(
    "address",
    [
        *(f"/submissions/{{}}{end}" for end in ("", ".json", ".csv", "/1/attempt-1", "/edit")),
        *("/api/v1/submissions/{}", "/api/v1/submissions/{}/1/attempt-1"),
        *("/figures/speedups?submission={}", "/complain/submission/{}"),
    ],
)
def test_nobody_finds_an_unlisted_submission_by_counting(address: str, client: Client) -> None:
    hidden = factory.make_submission("Hidden Model", visibility=Visibility.UNLISTED)
    factory.make_judged(hidden, factory.make_problem())
    client.force_login(factory.make_user("stranger"))
    another = "x" * len(hidden.key)
    for guess in (hidden.pk, f"{hidden.pk}-", f"{hidden.pk}-{another}", f"0{hidden.pk}"):
        assert client.get(address.format(guess)).status_code == 404, guess


def test_addresses_of_a_submission_lead_to_the_one_of_today(client: Client) -> None:
    hidden = factory.make_submission(visibility=Visibility.UNLISTED)
    factory.make_judged(hidden, factory.make_problem())
    known = hidden.address
    owner = Client()
    owner.force_login(hidden.owner)
    for end in ("", ".json", "/1/attempt-1.csv"):
        answer = owner.get(f"/submissions/{hidden.pk}{end}")
        assert answer["Location"] == f"/submissions/{known}{end}"
    answer = owner.get(f"/figures/speedups.json?submission={hidden.pk}")
    assert answer["Location"] == f"/figures/speedups.json?submission={known}"
    Submission.objects.update(visibility=Visibility.PUBLIC)
    DataVersion.objects.bump()
    answer = client.get(f"/submissions/{known}?verdict=ok")
    assert answer["Location"] == f"/submissions/{hidden.pk}?verdict=ok"
    assert client.get(f"/api/v1/submissions/{known}").json()["url"].endswith(f"/{hidden.pk}")


def test_a_public_kernel_page_hides_who_else_has_that_source(client: Client) -> None:
    problem = factory.make_problem()
    secret = factory.make_submission("Secret Model", visibility=Visibility.UNLISTED)
    public = factory.make_submission("Public Model")
    for submission in (secret, public):
        factory.make_kernel(submission, problem)
    digest = Kernel.objects.values_list("source", flat=True)[0]
    text = client.get(f"/kernels/{digest}").content.decode()
    assert "Public Model" in text
    assert "Secret Model" not in text


def test_an_account_lists_its_submissions_newest_first(client: Client) -> None:
    made = [factory.make_submission(f"Model {n}").pk for n in range(3)]
    client.force_login(factory.make_user("owner"))
    text = client.get("/account").content.decode()
    assert re.findall(r'<a href="/submissions/(\d+)">', text) == [str(pk) for pk in made[::-1]]


def test_the_account_page_needs_a_login(client: Client) -> None:
    assert client.get("/account")["Location"] == "/account/login?next=/account"


def test_a_token_is_shown_once_and_works_until_revoked(client: Client) -> None:
    owner = factory.make_user("owner")
    client.force_login(owner)
    page = client.post("/account", {"name": "ci", "scope": "submit", "lifetime": "30"})
    token = ApiToken.objects.get(owner=owner)
    [secret] = re.findall(r"<code>(pkb_[\w-]{40,})</code>", page.content.decode())
    assert secret not in client.get("/account").content.decode()
    assert ApiToken.objects.matching(secret) == token
    assert token.scope == Scope.SUBMIT
    assert client.post(f"/account/tokens/{token.pk}/revoke").status_code == 302
    assert ApiToken.objects.matching(secret) is None


def test_a_worker_token_cannot_be_asked_for(client: Client) -> None:
    client.force_login(factory.make_user("owner"))
    response = client.post("/account", {"name": "x", "scope": "worker", "lifetime": ""})
    assert response.status_code == 400
    assert not ApiToken.objects.exists()


def test_nobody_revokes_a_token_of_somebody_else(client: Client) -> None:
    token, text = ApiToken.objects.issue(
        scope=Scope.READ, name="t", owner=factory.make_user("owner")
    )
    client.force_login(factory.make_user("other"))
    assert client.post(f"/account/tokens/{token.pk}/revoke").status_code == 404
    assert ApiToken.objects.matching(text) is not None


FORM = {"model": "New Model", "harness": "zero-shot", "visibility": "public", "key": "one"}
KERNEL = {"problem": "1", "backend": "pytorch", "source": "def solution(x):\r\n    return x\r\n"}


def test_a_kernel_is_handed_in_once_however_often_it_is_sent(client: Client) -> None:
    factory.make_run(factory.make_kernel(factory.make_submission(), factory.make_problem()))
    client.force_login(factory.make_user("owner"))
    first = client.post("/submit", FORM | KERNEL)
    assert first.status_code == 302, first.content.decode()
    again = client.post("/submit", FORM | KERNEL)
    assert again["Location"] == first["Location"]
    made = Submission.objects.get(model__name="New Model")
    assert made.kernels.get().source.text == "def solution(x):\n    return x\n"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"source": ""}, "either one kernel"),
        ({"source": "x = 1\n"}, "solution"),
        ({"problem": ""}, "needs this"),
        ({"model": ""}, "needs this"),
        ({"cost_usd": "-1"}, "greater than or equal to 0"),
        ({"cost_usd": "nan"}, "Enter a number"),
        ({"model": "¡¿"}, "Latin letters"),
        ({"world_size": "7"}, "Choose world_size"),
        ({"step_budget": "20"}, "Only an agentic harness has a step budget."),
        ({"step_budget": "0", "harness": "agentic"}, "greater than or equal to 1"),
        ({"step_budget": "10001", "harness": "agentic"}, "less than or equal to 10000"),
        ({"notes": "x" * 5001}, "at most 5000 characters"),
        ({"notes": "a\0b"}, "Null characters"),
    ],
)
def test_a_refused_form_says_how_to_mend_it_and_stores_nothing(
    changes: dict[str, str], says: str, client: Client
) -> None:
    factory.make_problem()
    client.force_login(factory.make_user("owner"))
    response = client.post("/submit", FORM | KERNEL | changes)
    assert 400 <= response.status_code < 500
    assert says in response.content.decode()
    assert not Submission.objects.exists()


def test_a_refusal_stands_at_the_field_it_is_about(client: Client) -> None:
    factory.make_problem()
    client.force_login(factory.make_user("owner"))
    page = client.post("/submit", FORM | KERNEL | {"step_budget": "20"}).content.decode()
    assert '<ul class="errors" id="id_step_budget_error"><li>Only with harness=agentic.' in page


def test_a_refused_archive_is_told_of_file_by_file(client: Client) -> None:
    factory.make_problem()
    client.force_login(factory.make_user("owner"))
    files = {"2_gemm_pytorch.py": GOOD, "1_allreduce_pytorch.py": b"x = 1\n"}
    archive = SimpleUploadedFile("kernels.zip", make_zip(files))
    page = client.post("/submit", FORM | {"archive": archive}).content.decode()
    assert "2 files cannot be accepted" in page
    for name in files:
        assert f"<li><code>{name}</code>" in page
    assert not Submission.objects.exists()


def test_the_form_takes_what_the_api_takes_of_a_submission(client: Client) -> None:
    factory.make_run(factory.make_kernel(factory.make_submission(), factory.make_problem()))
    client.force_login(factory.make_user("owner"))
    # A line end counts once, as the browser counts it.
    notes = "a\r\n" * 2499 + "bc"
    told = {"harness": "agentic", "step_budget": "10000", "notes": notes}
    assert client.post("/submit", FORM | KERNEL | told).status_code == 302
    made = Submission.objects.get(model__name="New Model")
    assert (made.step_budget, made.notes) == (10_000, notes.replace("\r\n", "\n"))


def test_an_archive_of_a_published_tree_needs_no_model(client: Client) -> None:
    problem = factory.make_problem()
    Hardware.objects.create(slug="h200x4", title="H200", device="cuda", max_world_size=4)
    problem.payload["tolerances"]["bfloat16"] = {"atol": 3e-2, "rtol": 2e-2}
    problem.save()
    client.force_login(factory.make_user("owner"))
    tree = "solutions_cuda_bf16_h200_4_openai_gpt-5.5/1_allreduce_cuda.py"
    archive = SimpleUploadedFile("kernels.zip", make_zip({tree: GOOD}))
    told = {**FORM, "model": "", "cost_usd": "12.5", "archive": archive}
    assert client.post("/submit", told).status_code == 302
    stored = Submission.objects.select_related("model").get()
    assert (stored.model.name, stored.cost_usd) == ("gpt-5.5", 12.5)


def test_a_stranger_cannot_post_the_form(client: Client) -> None:
    assert client.post("/submit", FORM | KERNEL).status_code == 403
    assert not Submission.objects.exists()
