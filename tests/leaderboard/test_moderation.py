"""Complaints, rulings, bans, the audit log, and who of the staff may do what."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, transaction
from django.test import Client
from django.utils import timezone

from evaluator.messages.report import Verdict
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    AuditEntry,
    Ban,
    Complaint,
    Problem,
    ProblemAggregate,
    Run,
    Status,
    Submission,
    Summary,
    Visibility,
)
from leaderboard.runs import banning
from leaderboard.submissions import complaints, embargo, moderation, practice
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api

pytestmark = pytest.mark.server

HOSTILE = "<script>alert(1)</script> reads the oracle"
DOORS = (
    "/hosts",
    "/complaints",
    "/bans",
    "/audit",
    "/audit.csv",
    "/rejudge",
    "/moderate/run/{run}",
)


@pytest.fixture
def judged(problem: Problem) -> Run:
    return factory.make_judged(factory.make_submission(), problem)


@pytest.fixture
def reader(other: User, client: Client) -> Client:
    client.force_login(other)
    return client


@pytest.fixture
def moderator(staff: User) -> Client:
    client = Client()
    client.force_login(staff)
    return client


def test_to_be_of_the_staff_opens_nothing(judged: Run, api: Api) -> None:
    Submission.objects.update(visibility=Visibility.PRIVATE)
    bare = User.objects.create_user("bare", is_staff=True)
    client = Client()
    client.force_login(bare)
    for door in DOORS:
        assert client.get(door.format(run=judged.pk)).status_code == 403, door
    for hidden in (f"/runs/{judged.pk}", f"/submissions/{judged.kernel.submission_id}"):
        assert client.get(hidden).status_code == 404
    assert api(bare).get(f"/api/v1/runs/{judged.pk}").status_code == 404
    assert client.get("/admin/leaderboard/run/").status_code == 403


@pytest.mark.parametrize(
    ("codename", "door"),
    [
        *(("change_workerhost", "/hosts"), ("add_ban", "/bans"), ("view_auditentry", "/audit")),
        *(("add_run", "/rejudge"), ("add_ruling", "/complaints")),
    ],
)
def test_one_permission_opens_one_door(judged: Run, codename: str, door: str) -> None:
    user = User.objects.create_user("some", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename=codename))
    client = Client()
    client.force_login(user)
    opened = [one for one in DOORS[:6] if client.get(one).status_code == 200]
    assert opened == [one for one in DOORS[:6] if one.startswith(door) and one != "/audit.csv"] + (
        ["/audit.csv"] if door == "/audit" else []
    )


@pytest.mark.parametrize("kind", ["submission", "kernel", "run"])
def test_a_reader_complains_once_and_staff_answer(
    judged: Run, reader: Client, moderator: Client, other: User, kind: str
) -> None:
    keys = {
        "submission": judged.kernel.submission_id,
        "kernel": judged.kernel.source_id,
        "run": judged.pk,
    }
    page = f"/complain/{kind}/{keys[kind]}"
    assert page in reader.get(f"/{kind}s/{keys[kind]}").text
    assert reader.post(page, {"text": " "}).status_code == 400
    assert reader.post(page, {"text": "x" * 1001}).status_code == 400
    assert reader.post(page, {"text": HOSTILE}).status_code == 302
    assert reader.post(page, {"text": "again"}).status_code == 409
    assert "&lt;script&gt;alert(1)" in reader.get(page).text
    shown = moderator.get("/complaints").text
    assert "&lt;script&gt;alert(1)" in shown
    assert f"/moderate/{kind}/{keys[kind]}" in shown
    number = Complaint.objects.get().pk
    ended = {"complaint": number, "outcome": "upheld", "note": "It does."}
    assert moderator.post("/complaints", {**ended, "note": ""}).status_code == 400
    assert moderator.post("/complaints", {**ended, "outcome": "open"}).status_code == 400
    assert moderator.post("/complaints", ended).status_code == 302
    assert moderator.post("/complaints", ended).status_code == 409
    assert "It does." in reader.get(page).text
    assert AuditEntry.objects.get().subject == f"complaint {number}"
    assert reader.post(page, {"text": "again"}).status_code == 302


def test_nobody_complains_of_what_they_may_not_see_nor_all_day(
    judged: Run, reader: Client, other: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Client().get(f"/complain/run/{judged.pk}").status_code == 302
    for nothing in ("run/x", "kernel/x", "submission/999", "user/1"):
        assert reader.get(f"/complain/{nothing}").status_code == 404
    monkeypatch.setattr(complaints, "MOST_A_DAY", 1)
    reader.post(f"/complain/run/{judged.pk}", {"text": "one"})
    answer = reader.post(f"/complain/kernel/{judged.kernel.source_id}", {"text": "two"})
    assert answer.status_code == 429
    Submission.objects.update(visibility=Visibility.PRIVATE)
    assert reader.get(f"/complain/run/{judged.pk}").status_code == 404


@pytest.mark.parametrize("kind", ["run", "kernel"])
def test_a_ruling_on_a_single_result_is_shown_and_counts(
    judged: Run, problem: Problem, moderator: Client, kind: str
) -> None:
    factory.make_judged(judged.kernel.submission, problem, Verdict.OK, 2.0)
    before = _scores()
    key = judged.pk if kind == "run" else judged.kernel.source_id
    page = f"/moderate/{kind}/{key}"
    ruled = {"moderation": "disputed", "reason": HOSTILE}
    assert moderator.post(page, {**ruled, "reason": " "}).status_code == 400
    assert moderator.post(page, {**ruled, "moderation": "withdrawn"}).status_code == 400
    assert _scores() == before
    assert moderator.post(page, ruled).status_code == 302
    assert [made for made, _ in _scores()] == [made - 1 for made, _ in before]
    for address in (f"/runs/{judged.pk}", f"/kernels/{judged.kernel.source_id}"):
        assert "&lt;script&gt;alert(1)" in Client().get(address).text
    for address in (f"/runs/{judged.pk}.json", f"/api/v1/runs/{judged.pk}"):
        said = Client().get(address).json()["ruling"]
        assert said == {"moderation": "disputed", "reason": HOSTILE}
    kernels = Client().get(f"/submissions/{judged.kernel.submission_id}.json").json()["kernels"]
    assert [one["counts"] for one in kernels] == [False, True]
    assert kernels[0]["why_not"] == "disputed or invalidated by staff"
    assert moderator.post(page, {"moderation": "accepted"}).status_code == 302
    assert _scores() == before
    entries = AuditEntry.objects.filter(action="rule").order_by("pk")
    assert [one.detail["after"]["moderation"] for one in entries] == ["disputed", "accepted"]
    assert Run.objects.get(pk=judged.pk).verdict == "ok"


def _scores() -> list[tuple[int, int]]:
    rows = [*Summary.objects.order_by("pk"), *ProblemAggregate.objects.order_by("pk")]
    return [(row.made, row.correct) for row in rows]


def test_a_submission_is_moderated_on_its_page(judged: Run, moderator: Client) -> None:
    page = f"/moderate/submission/{judged.kernel.submission_id}"
    assert moderator.post(page, {"moderation": "invalidated"}).status_code == 400
    moderator.post(page, {"moderation": "invalidated", "reason": "A cheat."})
    assert Submission.objects.get().moderation_reason == "A cheat."
    shown = moderator.get(page).text
    assert "/bans?account=owner" in shown
    assert f"/rejudge?submission={judged.kernel.submission_id}" in shown


@pytest.mark.parametrize("hide", ["", "1"])
def test_a_banned_account_is_out_until_the_ban_is_lifted(
    judged: Run, owner: User, api: Api, moderator: Client, hide: str
) -> None:
    waiting = factory.make_run(judged.kernel)
    own, tokens = Client(), api(owner)
    own.force_login(owner)
    assert own.get("/account").status_code == 200
    asked = {"account": "owner", "reason": "Cheats.", "hide": hide}
    assert moderator.post("/bans", {**asked, "reason": ""}).status_code == 400
    assert moderator.post("/bans", {**asked, "account": "nobody"}).status_code == 404
    assert moderator.post("/bans", asked).status_code == 302
    assert moderator.post("/bans", asked).status_code == 409
    assert own.get("/account").status_code == 302
    refused = tokens.get("/api/v1/problems")
    assert (refused.status_code, "is banned: " in refused.text) == (401, True)
    waiting.refresh_from_db()
    assert waiting.status == Status.CANCELLED
    assert Client().get(f"/runs/{judged.pk}").status_code == (404 if hide else 200)
    assert moderator.post("/bans", {"lift": Ban.objects.get().pk}).status_code == 302
    assert moderator.post("/bans", {"lift": Ban.objects.get().pk}).status_code == 409
    assert tokens.get("/api/v1/problems").status_code == 200
    assert Client().get(f"/runs/{judged.pk}").status_code == 200
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"ban", "lift ban"} <= actions


def test_nobody_bans_themselves_or_a_superuser(staff: User, moderator: Client) -> None:
    User.objects.create_superuser("root")
    for name, status in (("staff", 400), ("root", 403)):
        answer = moderator.post("/bans", {"account": name, "reason": "x"})
        assert answer.status_code == status
    assert not Ban.objects.exists()


def test_tokens_are_logged_and_the_log_is_filtered(
    owner: User, moderator: Client, client: Client
) -> None:
    client.force_login(owner)
    client.post("/account", {"name": "=cmd()", "scope": "read", "lifetime": "30"})
    token = owner.tokens.get()
    client.post(f"/account/tokens/{token.pk}/revoke")
    moderation.note(None, "rejudge", "all", {})
    shown = moderator.get("/audit").text
    assert shown.count(f"token {token.prefix}") == 2
    for query, actions in (
        ("?actor=owner", ["revoke", "make"]),
        ("?actor=command+line", ["rejudge"]),
        ("?action=make", ["make"]),
        ("?subject=token", ["revoke", "make"]),
        ("?subject=%00token&actor=nobody", []),
    ):
        lines = moderator.get(f"/audit.csv{query}").text.splitlines()[1:]
        assert [line.split(",")[2] for line in lines] == actions


def test_the_database_keeps_the_log(owner: User) -> None:
    moderation.note(owner, "try", "it", {})
    for act in (
        lambda: AuditEntry.objects.all().delete(),
        lambda: AuditEntry.objects.update(action="x"),
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            act()
    assert AuditEntry.objects.get().action == "try"


def test_a_ban_of_an_account_with_hidden_work_restores_only_what_it_hid(
    judged: Run, owner: User, staff: User
) -> None:
    unlisted = factory.make_submission(visibility=Visibility.UNLISTED)
    kept = factory.make_submission(visibility=Visibility.PRIVATE)
    made = banning.ban(owner, staff, "Cheats.", hide=True)
    assert not Submission.objects.exclude(visibility=Visibility.PRIVATE).exists()
    banning.lift(made, staff)
    after = dict(Submission.objects.values_list("pk", "visibility"))
    assert (after[unlisted.pk], after[kept.pk]) == ("unlisted", "private")
    assert after[judged.kernel.submission_id] == "public"


def test_what_a_banned_account_hides_is_not_published_by_its_date(
    judged: Run, owner: User, staff: User
) -> None:
    due = {"visibility": Visibility.PRIVATE, "public_from": timezone.now()}
    Submission.objects.update(**due)
    made = banning.ban(owner, staff, "Cheats.", hide=True)
    assert embargo.publish_due() == 0
    banning.lift(made, staff)
    assert embargo.publish_due() == 1


def test_what_a_request_had_begun_before_a_ban_is_not_taken_after_it(
    judged: Run, owner: User, staff: User
) -> None:
    banning.ban(owner, staff, "Cheats.")
    assert owner.is_active  # as the request has read it
    with pytest.raises(RequestError, match="closed"), transaction.atomic():
        practice.check_queue(owner, 1)
