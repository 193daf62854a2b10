"""A kernel's way through the site: handed in, followed to its end, compared, found, downloaded."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from leaderboard.models import Kernel, Run, Submission
from tests.leaderboard import factory
from tests.leaderboard.browser.conftest import LogIn
from tests.leaderboard.frozen import freeze
from tests.leaderboard.running import NO_TRITON, decline

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_run_is_followed_to_its_end_and_no_further(site: dict[str, str], page: Page) -> None:
    run = Run.objects.get(pk=site["waiting"].removeprefix("/runs/"))
    since = timezone.now() - timedelta(seconds=3665)
    Run.objects.filter(pk=run.pk).update(created_at=since)
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site["waiting"])
    expect(page.locator("[data-field=status]")).to_have_text("queued")
    expect(page.locator("[data-field=queue_position]")).to_have_text("1")
    expect(page.locator("[data-declined]")).to_be_hidden()
    decline(run)
    expect(page.locator("[data-declined]")).to_contain_text(f"host-1 declined: {NO_TRITON}")
    expect(page.locator("[data-field=waiting]")).to_have_text("1 h 1 min")
    factory.start(run, phase="verify", done=2, total=6)
    expect(page.locator("[data-field=steps]")).to_have_text("2 of 6")
    expect(page.locator("[aria-current=step]")).to_have_text("Verify")
    run.refresh_from_db()
    factory.finish(run, factory.make_report(run, speedup=1.7))
    expect(page.locator(".state.ok")).to_have_text("ok")
    expect(page.locator("[data-run]")).to_have_count(0)
    expect(page.locator(".facts .big").first).to_have_text("1.70×")
    # What asks is gone from the page with its script.
    assert any(url.endswith(f"{run.id}.json") for url in asked)
    expect(page.locator("script[src*='run']")).to_have_count(0)


def test_a_kernel_is_handed_in_through_the_form(
    site: dict[str, str], page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    log_in()
    page.goto("/submit?problem=1")
    form = page.locator("main form")
    form.get_by_label("Model").fill("Model Three")
    form.get_by_label("Backend").select_option("pytorch")
    form.get_by_label("Source", exact=True).fill("def solution(tensor):\n    return tensor\n")
    form.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    expect(page.locator("[data-field=status]")).to_have_text("queued")
    assert Submission.objects.filter(model__name="Model Three").exists()
    page.goto("/submit")
    form.get_by_label("Model").fill("Model Four")
    form.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    assert not Submission.objects.filter(model__name="Model Four").exists()
    assert "400" in complaints.pop()  # Chromium's own line about the answer


def test_code_is_copied_without_what_stands_beside_it(site: dict[str, str], page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(site["kernel"])
    assert page.locator(".source mark").count() > 0
    digest = site["kernel"].removeprefix("/kernels/")
    page.get_by_role("button", name="Copy: Kernel source").click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    source = Kernel.objects.filter(source_id=digest)[0].source.text
    assert page.evaluate("navigator.clipboard.readText()") == source
    page.locator("#reproduce ~ button.copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(2)
    command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith("python -m evaluator run allreduce kernel.py")


def test_a_kernel_shows_its_evidence_and_its_differences(site: dict[str, str], page: Page) -> None:
    page.goto(site["kernel"])
    for part in ("speed", "trials", "bursts", "ranks", "timeline", "mechanisms", "source"):
        expect(page.locator(f"#{part}")).to_have_count(1)
    expect(page.locator("#ranks")).to_contain_text("sw power cap")
    page.get_by_role("link", name="the reference", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?diff=reference#diff$"))
    expect(page.locator(".diff tr.added").first).to_be_visible()
    expect(page.locator(".diff tr.removed").first).to_be_visible()
    page.get_by_role("link", name="the previous attempt or step").click()
    expect(page).to_have_url(re.compile(r"\?diff=previous#diff$"))
    expect(page.locator(".diff tr.added")).to_contain_text("Step 2.")
    page.locator(".diff tr.added .at a").click()
    expect(page).to_have_url(re.compile(r"#L-5$"))
    expect(page.locator(":target")).to_be_in_viewport()
    height = page.evaluate("getComputedStyle(document.querySelector(':target'), '::before').height")
    assert height.startswith("19")  # the line is tinted
    page.get_by_role("link", name="Close").click()
    expect(page.locator(".diff")).to_have_count(0)


def test_search_leads_straight_to_what_is_named(site: dict[str, str], page: Page) -> None:
    digest = Kernel.objects.filter(submission__model__name="Model One").values("source")[0]
    page.goto("/")
    box = page.get_by_role("searchbox")
    box.fill(digest["source"][:10])
    box.press("Enter")
    expect(page).to_have_url(re.compile(f"/kernels/{digest['source']}"))
    box.fill("problem")
    box.press("Enter")
    expect(page.locator(".found li").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"/search\?q=problem$"))
    page.locator("#search-q").fill("<b>nothing</b>")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".empty")).to_contain_text("Nothing public is called <b>nothing</b>")


def test_a_snapshot_is_downloaded(site: dict[str, str], page: Page) -> None:
    folder = freeze()
    page.goto("/snapshots")
    page.get_by_role("link", name="2026-11").click()
    expect(page.locator("#verify")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="MANIFEST.json").click()
    assert Path(download.value.path()).read_bytes() == (folder / "MANIFEST.json").read_bytes()


def test_evidence_reads_without_scripts(site: dict[str, str], plain: Page) -> None:
    plain.goto(site["kernel"])
    expect(plain.locator("#verdict .state")).to_have_text("ok")
    plain.get_by_role("link", name="the reference", exact=True).click()
    expect(plain.locator(".diff tr.added").first).to_be_visible()
    plain.locator("summary", has_text="Trials").click()
    expect(plain.locator("#trials table").first).to_be_visible()
    plain.goto(site["waiting"])
    expect(plain.locator("[data-field=status]")).to_have_text("queued")
    expect(plain.locator("noscript meta[http-equiv=refresh]")).to_have_count(1)
