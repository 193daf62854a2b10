"""A researcher's way: sign up, hand in, be told, have judged again, publish, withdraw."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from django.utils import timezone
from playwright.sync_api import Page, expect

from leaderboard.models import Problem, Run, Submission, Visibility
from leaderboard.runs import evaluation
from leaderboard.runs import notices as delivery
from tests.leaderboard import factory
from tests.leaderboard.people import PASSWORD, QUICK
from tests.leaderboard.running import claim, lose, report_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def _mailed(subject: str) -> str:
    """Return the text of the newest mail, whose subject has these words."""
    assert subject in mail.outbox[-1].subject
    return str(mail.outbox[-1].body)


def _sign_up(page: Page) -> None:
    page.goto("/account/sign-up")
    page.get_by_label("User name").fill("grace")
    page.get_by_label("E-mail").fill("grace@example.org")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign up").click()
    expect(page).to_have_url(re.compile("/account/email/sent$"))
    link = re.search(r"http://\S+/account/email/confirm/\S+", _mailed("onfirm"))
    assert link
    page.goto(link[0])
    page.get_by_role("button", name="Confirm").click()
    page.goto("/account/login")
    page.get_by_label("User name").fill("grace")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Account grace")).to_be_visible()


def _token(page: Page) -> str:
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Make a token").click()
    found = re.search(r"pkb_[\w-]{40,}", page.locator("main").inner_text())
    assert found
    return found[0]


def _hand_in(page: Page, token: str, problem: Problem) -> Submission:
    """Hand a kernel in as a script does, hidden until a date."""
    until = timezone.now() + timedelta(days=9)
    kernel = {"problem": problem.slug, "backend": "pytorch", "source": factory.SOURCE}
    told = {"model": "Quiet Model", "harness": "zero-shot", "public_from": until.isoformat()}
    answer = page.request.post(
        "/api/v1/submissions",
        data={**told, **kernel},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status == 201, answer.text()
    return Submission.objects.get(model__name="Quiet Model")


def test_a_researcher_is_led_from_signing_up_to_withdrawing(
    page: Page, problem: Problem, settings: Any
) -> None:
    settings.PASSWORD_HASHERS, settings.SIGN_UP = QUICK, True
    _sign_up(page)
    made = _hand_in(page, _token(page), problem)
    page.goto("/account/notices")
    page.get_by_label("All runs of a submission have ended").check()
    page.get_by_role("button", name="Save").click()
    lose(Run.objects.get())
    page.goto("/account")
    page.get_by_role("link", name=f"Edit submission {made.pk}").click()
    page.get_by_role("button", name="Judge again").click()
    expect(page.get_by_role("status")).to_contain_text("1 run queued")
    again = Run.objects.queued().get()
    evaluation.finish(again.pk, claim(again).holding, report_of(again))
    delivery.deliver()
    assert f"/submissions/{made.pk}" in _mailed(f"Submission {made.pk} (Quiet Model)")
    assert page.request.get("/leaderboard.json").text().count("Quiet Model") == 0
    Submission.objects.update(public_from=timezone.now() - timedelta(seconds=1))
    call_command("sweep")
    assert Submission.objects.get().visibility == Visibility.PUBLIC
    page.goto("/")
    expect(page.locator("main")).to_contain_text("Quiet Model")
    page.goto(f"/submissions/{made.pk}/edit")
    page.get_by_label("Reason").fill("The prompt told the answer.")
    page.get_by_role("button", name=f"Withdraw submission {made.pk}").click()
    expect(page.locator("main")).to_contain_text("Withdrawn by its owner")
    page.goto("/")
    expect(page.locator("main")).not_to_contain_text("Quiet Model")
