"""What owners are told of their submissions, once each, and by which ways."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone

from leaderboard.models import Delivery, Moderation, Notice, NoticeChoice, Run, Submission
from leaderboard.models.notices import MAX_TRIES, Event
from leaderboard.runs import evaluation, webhooks
from leaderboard.runs import notices as delivery
from leaderboard.submissions import embargo, moderation
from tests.leaderboard import factory
from tests.leaderboard.running import claim, lose, report_of

pytestmark = pytest.mark.django_db

HOOK = "https://example.org/hook"
EVERY = ["judged", "failed", "disputed", "invalidated", "record-lost"]


def kinds() -> list[str]:
    return [row.kind for row in Notice.objects.order_by("pk")]


def judge(run: Run) -> None:
    evaluation.finish(run.pk, claim(run).holding, report_of(run))


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, Any]]]:
    """Every message to a webhook, none of which leaves."""
    found: list[tuple[str, str, dict[str, Any]]] = []

    def post(address: str, secret: str, body: bytes) -> None:
        found.append((address, secret, json.loads(body)))

    monkeypatch.setattr("leaderboard.runs.webhooks.post", post)
    return found


def confirm(owner: User) -> None:
    EmailAddress.objects.create(user=owner, email="owner@example.org", verified=True)


def choose(owner: User, **fields: Any) -> None:
    confirm(owner)
    NoticeChoice.objects.update_or_create(owner=owner, defaults=fields)


def test_a_submission_is_told_of_once_when_its_last_run_has_ended(run: Run) -> None:
    more = factory.make_kernel(run.kernel.submission, factory.make_problem(2, "allgather"))
    last = factory.make_run(more)
    judge(run)
    assert kinds() == []
    lose(last)
    assert kinds() == ["judged", "failed"]
    judged, failed = Notice.objects.order_by("pk")
    assert judged.text == "2 of its runs have ended, 1 of them ok."
    assert failed.text.startswith("1 of its runs ended without a result")
    Notice.objects.judged(run.kernel.submission_id)
    assert len(kinds()) == 2
    again = factory.make_run(more)
    judge(again)
    assert kinds() == ["judged", "failed", "judged"]


def test_practice_is_followed_and_not_told_of(run: Run) -> None:
    Submission.objects.update(is_practice=True)
    judge(run)
    assert kinds() == []


def test_who_loses_a_record_is_told_once_a_rival(problem: object) -> None:
    first = factory.make_submission("First")
    one, two = factory.make_problem(), factory.make_problem(2, "allgather")
    for each in (one, two):
        factory.make_judged(first, each, speedup=2.0)
    own = factory.make_submission("Also mine")
    factory.make_judged(own, one, speedup=2.5)
    Notice.objects.all().delete()
    rival = factory.make_submission("Rival", owner="other", visibility="private")
    for each in (one, two):
        factory.make_judged(rival, each, speedup=4.0)
    assert "record-lost" not in kinds()
    embargo.publish(rival, None)
    lost = Notice.objects.filter(kind="record-lost").order_by("pk")
    assert [row.submission_id for row in lost] == [own.pk, first.pk]
    assert lost[0].text == f"Submission {rival.pk} is faster now at problem 1 (allreduce), on cpu."


def test_a_record_that_was_taken_away_is_not_lost_to_anybody(problem: object, staff: User) -> None:
    best = factory.make_submission("Best")
    factory.make_judged(factory.make_submission("Next", owner="other"), factory.make_problem())
    factory.make_judged(best, factory.make_problem(), speedup=9.0)
    Notice.objects.all().delete()
    moderation.moderate(best, staff, Moderation.INVALIDATED, "Reads the oracle.")
    assert kinds() == ["invalidated"]


def test_mail_goes_to_who_wants_it_and_once(run: Run, owner: User, staff: User) -> None:
    choose(owner, mailed=["disputed"])
    Submission.objects.update(notes="")
    model = run.kernel.submission.model
    model.name = "Two\nLines \u202e"
    model.save()
    moderation.moderate(run.kernel.submission, staff, Moderation.DISPUTED, "Why\r\nso?")
    moderation.moderate(run.kernel.submission, staff, Moderation.INVALIDATED, "Sure.")
    assert delivery.deliver() == 1
    assert delivery.deliver() == 0
    [sent] = mail.outbox
    assert sent.to == ["owner@example.org"]
    number = run.kernel.submission_id
    assert sent.subject == f"Submission {number} (Two Lines [U+202E]): disputed"
    assert sent.body.startswith("Why\nso?")
    assert f"/submissions/{number}\n" in sent.body


def test_who_has_chosen_nothing_is_mailed_of_disputes_alone(run: Run, owner: User) -> None:
    EmailAddress.objects.create(user=owner, email="new@example.org", primary=True)
    confirm(owner)
    judge(run)
    delivery.deliver()
    assert mail.outbox == []
    moderation.moderate(run.kernel.submission, owner, Moderation.DISPUTED, "Why?")
    delivery.deliver()
    assert [sent.to for sent in mail.outbox] == [["owner@example.org"]]


def test_a_closed_account_is_told_nothing(
    run: Run, owner: User, posted: list[tuple[str, str, dict[str, Any]]]
) -> None:
    choose(owner, mailed=["judged"], webhook=HOOK)
    judge(run)
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert delivery.deliver() == 0
    assert (mail.outbox, posted) == ([], [])


def test_a_webhook_gets_everything(
    run: Run, owner: User, posted: list[tuple[str, str, dict[str, Any]]]
) -> None:
    choose(owner, mailed=[], webhook=HOOK, webhook_salt="s")
    judge(run)
    assert delivery.deliver() == 1
    [(address, secret, body)] = posted
    assert (address, secret) == (HOOK, webhooks.secret_of("s"))
    assert (body["kind"], body["submission"]) == ("judged", run.kernel.submission_id)
    assert mail.outbox == []


def test_a_webhook_that_does_not_answer_is_switched_off_with_a_note(
    run: Run, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise webhooks.NotSent("answered 500")

    monkeypatch.setattr("leaderboard.runs.webhooks.post", refuse)
    choose(owner, mailed=[], webhook=HOOK, webhook_salt="s")
    judge(run)
    for tried in range(1, MAX_TRIES + 1):
        assert delivery.deliver() == 0
        assert delivery.deliver() == 0  # not due yet
        assert Delivery.objects.get().tries == tried
        Delivery.objects.exclude(next_at=None).update(next_at=timezone.now())
    assert delivery.deliver() == 0
    client = Client()
    client.force_login(owner)
    assert "after 5 tries: answered 500" in client.get("/account/notices").content.decode()
    client.post("/account/notices", {"webhook": HOOK})
    assert NoticeChoice.objects.get().webhook_off == ""


def test_a_webhook_that_hangs_is_asked_once_for_all_that_waits(
    run: Run, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def refuse(*_: object) -> None:
        asked.append(_)
        raise webhooks.NotSent("no answer")

    monkeypatch.setattr("leaderboard.runs.webhooks.post", refuse)
    choose(owner, mailed=["judged"], webhook=HOOK, webhook_salt="s")
    for number in range(3):
        Notice.objects.tell(Event.JUDGED, run.kernel.submission, "Done.", str(number))
    assert delivery.deliver() == len(mail.outbox) == 3
    assert len(asked) == 1


def test_secrets_are_shown_once(owner: User, client: Client) -> None:
    assert client.get("/account/notices").status_code == 302
    client.force_login(owner)
    page = client.post("/account/notices", {"webhook": HOOK, "mailed": ["judged"]})
    [secret] = re.findall(r"pkbwh_[0-9a-f]{64}", page.content.decode())
    choice = NoticeChoice.objects.get()
    assert webhooks.secret_of(choice.webhook_salt) == secret
    assert choice.mailed == ["judged"]
    assert "pkbwh_" not in client.get("/account/notices").content.decode()
    client.post("/account/notices", {"webhook": HOOK, "mailed": EVERY})
    assert NoticeChoice.objects.get().webhook_salt == choice.webhook_salt


@pytest.mark.parametrize(
    "address",
    [
        *("http://example.org", "https://u:p@example.org", "https://example.org:22/"),
        *("https://example.org/#x", "https://é.org", "javascript:alert(1)", "https://"),
        *("https://example.org:x/", "https://example.org/a b", f"https://{'a' * 200}.org"),
    ],
)
def test_what_is_no_address_of_a_webhook_is_refused(address: str, client: Client) -> None:
    client.force_login(factory.make_user("owner"))
    assert client.post("/account/notices", {"webhook": address}).status_code == 400
    assert not NoticeChoice.objects.exists()


def test_a_feed_is_for_who_has_its_address(run: Run, owner: User, client: Client) -> None:
    submission = run.kernel.submission
    submission.model.name = "<Model>\x0b"
    submission.model.save()
    judge(run)
    client.force_login(owner)
    page = client.post("/account/notices", {"feed": "new"}).content.decode()
    [path] = re.findall(r"(/account/feed/[\w-]+\.atom)", page)
    answer = Client().get(path)
    assert "&lt;Model&gt;[U+000B]" in answer.content.decode()
    assert answer["X-Robots-Tag"] == "noindex"
    assert "no-store" in answer["Cache-Control"]
    client.post("/account/notices", {"feed": "new"})
    for gone in (path, "/account/feed/none.atom"):
        assert Client().get(gone).status_code == 404
