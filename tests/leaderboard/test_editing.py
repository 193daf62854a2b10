"""What a submission's owner may change of it afterwards, by page and by HTTP, and what stays."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from leaderboard.models import (
    AuditEntry,
    DataVersion,
    Moderation,
    Run,
    Scope,
    Submission,
    Visibility,
)
from leaderboard.runs import evaluation
from leaderboard.submissions import moderation
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api

pytestmark = pytest.mark.django_db

FORM = {"visibility": "public", "cost_usd": "", "notes": ""}
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def page(run: Run) -> str:
    """Of a submission whose only run waits."""
    return f"/submissions/{run.kernel.submission_id}/edit"


def as_user(name: str) -> Client:
    user = factory.make_staff() if name == "staff" else factory.make_user(name)
    client = Client()
    client.force_login(user)
    return client


def stored() -> dict[str, Any]:
    return dict(Submission.objects.values().get())


def judge(run: Run) -> None:
    factory.finish(run, factory.make_report(run))


def test_an_owner_changes_what_a_submission_says(run: Run, page: str, client: Client) -> None:
    address = f"/submissions/{run.kernel.submission_id}"
    assert "edited" not in client.get(address).content.decode()
    before, version = stored(), DataVersion.objects.current()
    told = {**FORM, "cost_usd": "12.5", "notes": "Thinking\r\nhard.", "link": "https://a.org"}
    answer = as_user("owner").post(page, told)
    assert (answer.status_code, answer["Location"]) == (302, address)
    after = stored()
    assert after.pop("edited_at") is not None
    assert before.pop("edited_at") is None
    assert after == {
        **before,
        **{"cost_usd": 12.5, "notes": "Thinking\nhard.", "link": "https://a.org"},
    }
    assert DataVersion.objects.current() > version
    shown = client.get(address).content.decode()
    assert "Thinking<br>hard." in shown
    assert "its description edited" in shown


def test_nothing_that_scores_or_names_can_be_changed(run: Run, page: str, api: Api) -> None:
    before = stored()
    others = {"model": "Other", "harness": "human", "k": "9", "trust": "verified", "owner": "1"}
    assert as_user("owner").post(page, FORM | others).status_code == 302
    assert stored() == before
    owner = User.objects.get(username="owner")
    for name, value in others.items():
        answer = api(owner).patch(f"/api/v1{page[:-5]}", {name: value}, format="json")
        assert answer.status_code == 400
        assert list(answer.json()["error"]["fields"]) == [name]
    assert stored() == before


def test_a_form_saved_as_it_was_changes_nothing(page: str) -> None:
    version = DataVersion.objects.current()
    assert as_user("owner").post(page, FORM).status_code == 302
    assert Submission.objects.get().edited_at is None
    assert DataVersion.objects.current() == version
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("who", "visibility", "status"),
    [
        *(("owner", one, 200) for one in Visibility.values),
        *(("staff", one, 200) for one in Visibility.values),
        *(("other", "public", 403), ("other", "unlisted", 404), ("other", "private", 404)),
    ],
)
def test_only_the_owner_and_staff_may_edit(
    who: str, visibility: str, status: int, page: str, api: Api
) -> None:
    Submission.objects.update(visibility=visibility)
    client = as_user(who)
    assert client.get(page).status_code == status
    told = {**FORM, "visibility": visibility, "notes": "Mine."}
    assert client.post(page, told).status_code == (302 if status == 200 else status)
    notes = "Mine." if status == 200 else ""
    assert Submission.objects.get().notes == notes
    user = User.objects.get(username=who)
    answer = api(user).patch(f"/api/v1{page[:-5]}", {"notes": "By HTTP."}, format="json")
    assert answer.status_code == status
    assert Submission.objects.get().notes == ("By HTTP." if status == 200 else "")


def test_a_stranger_is_asked_to_log_in_whatever_there_is(page: str, client: Client) -> None:
    for address in (page, "/submissions/999/edit"):
        assert client.get(address)["Location"] == f"/account/login?next={address}"
        assert client.post(address, FORM)["Location"] == f"/account/login?next={address}"
    assert as_user("owner").get(f"/submissions/{10**30}/edit").status_code == 404


def test_a_form_from_another_site_is_refused(page: str) -> None:
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(User.objects.get(username="owner"))
    assert careful.post(page, {**FORM, "notes": "Forged."}).status_code == 403
    assert Submission.objects.get().notes == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"visibility": "secret"}, "not one of the available choices"),
        ({"cost_usd": "-1"}, "greater than or equal to 0"),
        ({"cost_usd": "inf"}, "Enter a number"),
        ({"link": "javascript:alert(1)"}, "not an address of a page"),
        ({"notes": "x" * 5001}, "at most 5000 characters"),
    ],
)
def test_a_refused_change_says_how_to_mend_it(
    changes: dict[str, str], says: str, page: str
) -> None:
    answer = as_user("owner").post(page, FORM | changes)
    assert answer.status_code == 400
    assert says in answer.content.decode()
    assert Submission.objects.get().edited_at is None


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"visibility": "secret"}, 400, "invalid"),
        ({"cost_usd": "many"}, 400, "invalid"),
        ({"notes": "x" * 5001}, 400, "invalid"),
        ({"notes": "a\0b"}, 400, "invalid"),
        ({"step_budget": 3}, 400, "bad_step_budget"),
        ({"link": "http://example.org"}, 400, "bad_link"),
        ([], 400, "bad_request_body"),
    ],
)
def test_a_refused_patch_says_how_to_mend_it(
    changes: Any, status: int, code: str, page: str, api: Api
) -> None:
    owner = User.objects.get(username="owner")
    answer = api(owner).patch(f"/api/v1{page[:-5]}", changes, format="json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"]["fix"]
    assert Submission.objects.get().edited_at is None


def test_a_patch_changes_what_it_names(page: str, api: Api, client: Client) -> None:
    Submission.objects.update(harness="agentic", step_budget=4, cost_usd=3.0, notes="Old.")
    owner, address = User.objects.get(username="owner"), f"/api/v1{page[:-5]}"
    answer = api(owner).patch(address, {"cost_usd": None, "step_budget": 8}, format="json")
    told = client.get(address).json()
    assert answer.json() == told
    names = ("cost_usd", "step_budget", "notes", "visibility")
    assert [told[name] for name in names] == [None, 8, "Old.", "public"]
    assert told["edited_at"] > told["created_at"]
    for token, status in (
        (api(owner, Scope.READ), 403),
        (api(), 401),
        (api(None, Scope.WORKER), 403),
    ):
        assert token.patch(address, {"notes": "No."}, format="json").status_code == status
    assert Submission.objects.get().notes == "Old."


def test_steps_are_asked_of_agentic_submissions_only(page: str) -> None:
    assert "Step budget" not in as_user("owner").get(page).content.decode()
    Submission.objects.update(harness="agentic")
    assert "Step budget" in as_user("owner").get(page).content.decode()
    assert as_user("owner").post(page, {**FORM, "step_budget": "7"}).status_code == 302
    assert Submission.objects.get().step_budget == 7


@pytest.fixture(params=["waiting", "cancelled", "running", "lost", "judged"])
def state(request: pytest.FixtureRequest, run: Run) -> str:
    """What has become of the submission's only run."""
    found = str(request.param)
    if found == "cancelled":
        evaluation.cancel(run)
    elif found == "lost":
        Run.objects.update(tries=1)
    elif found != "waiting":
        factory.start(run)
    if found == "judged":
        run.refresh_from_db()
        judge(run)
    return found


@pytest.mark.parametrize("visibility", Visibility.values)
def test_what_has_been_judged_is_neither_hidden_nor_published(
    state: str, visibility: str, page: str, api: Api
) -> None:
    hidden = {"private", "unlisted"}
    allowed = hidden if visibility in hidden else {"public"}
    if state in {"waiting", "cancelled"}:
        allowed = {*hidden, "public"}
    owner, address = User.objects.get(username="owner"), f"/api/v1{page[:-5]}"
    for wanted in Visibility.values:
        Submission.objects.update(visibility=visibility)
        answer = api(owner).patch(address, {"visibility": wanted}, format="json")
        assert answer.status_code == (200 if wanted in allowed else 409)
        by_http = Submission.objects.get().visibility
        Submission.objects.update(visibility=visibility)
        as_user("owner").post(page, {**FORM, "visibility": wanted})
        by_page = Submission.objects.get().visibility
        assert [by_http, by_page] == [wanted if wanted in allowed else visibility] * 2


def test_what_staff_dispute_stays_where_its_reason_can_be_read(run: Run, page: str) -> None:
    found, staff = run.kernel.submission, factory.make_user("staff")
    moderation.moderate(found, staff, Moderation.DISPUTED, "Reads the oracle.")
    as_user("owner").post(page, {**FORM, "visibility": "private", "notes": "I do not."})
    found.refresh_from_db()
    assert (found.visibility, found.notes) == ("public", "I do not.")


def test_what_became_judged_meanwhile_is_refused_with_a_way_out(
    run: Run, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = as_user("owner")
    judge(run)
    monkeypatch.setattr("leaderboard.submissions.forms.visibilities", lambda _: tuple(Visibility))
    answer = client.post(page, {**FORM, "visibility": "private"})
    assert answer.status_code == 409
    assert "The submission stays public" in answer.content.decode()
    assert "Hand the kernels in again" in answer.content.decode()
    assert Submission.objects.get().visibility == "public"


def test_a_hidden_submission_leaves_the_lists_and_comes_back(page: str, client: Client) -> None:
    def is_listed() -> bool:
        return len(client.get("/api/v1/submissions").json()["results"]) == 1

    assert is_listed()
    as_user("owner").post(page, {**FORM, "visibility": "unlisted"})
    assert not is_listed()
    as_user("owner").post(page, FORM)
    assert is_listed()


def test_every_change_is_kept_and_shown_to_owner_and_staff_only(page: str, client: Client) -> None:
    as_user("owner").post(page, {**FORM, "notes": HOSTILE})
    as_user("staff").post(page, {**FORM, "notes": "Mended."})
    changed = [(e.actor and e.actor.username, e.detail["after"]) for e in AuditEntry.objects.all()]
    assert changed == [("staff", {"notes": "Mended."}), ("owner", {"notes": HOSTILE})]
    shown = as_user("owner").get(page).content.decode()
    assert "<td>staff</td>" in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert HOSTILE not in shown
    assert "onerror" not in client.get(page[:-5]).content.decode()


def test_an_account_leads_to_the_page_that_edits(page: str) -> None:
    assert f'href="{page}"' in as_user("owner").get("/account").content.decode()
