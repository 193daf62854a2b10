"""The pages in a real browser: no console errors, no breach of the policy, readable at 390 px."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from evaluator.report import RankLog, Verdict
from leaderboard.models import DataVersion, Run, Submission
from tests.leaderboard import factory
from tests.leaderboard.running import NO_TRITON, decline

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    *("--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
AXE = Path(__file__).parent / "vendor/axe.min.js"
SERIOUS = ("serious", "critical")
NAME = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Playwright runs an event loop in this thread, where Django would refuse to touch the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def context(browser: Browser, live_server: LiveServer) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=live_server.url)
    made.set_default_timeout(15_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that fails the test for every error in its console, policy breaches included."""
    made, errors = context.new_page(), list[str]()
    made.on("console", lambda message: errors.append(message.text) if is_error(message) else None)
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}"))
    yield made
    assert not errors


def is_error(message: Any) -> bool:
    return message.type in ("error", "warning")


@pytest.fixture
def site() -> dict[str, str]:
    """Two submissions, one with hostile texts, a claim; addresses by name."""
    DataVersion.objects.get_or_create(pk=1)
    factory.make_publication()
    one, two = factory.make_problem(), factory.make_problem(2, "gemm", "expert")
    first, second = factory.make_submission("Model One"), factory.make_submission(NAME)
    done = factory.make_judged(first, one, speedup=2.0)
    failed = factory.make_run(factory.make_kernel(second, two, source=hostile_source()))
    logs = (RankLog(rank=0, text=NAME + "x" * 10_000),)
    report = factory.make_report(failed, Verdict.RUNTIME_ERROR, message=NAME, logs=logs)
    factory.finish(failed, report)
    waiting = factory.make_run(factory.make_kernel(first, two, source="def solution(): ...\n"))
    return {
        **{
            name: f"/{name}"
            for name in ("categories", "matrix", "problems", "methodology", "status")
        },
        "board": "/",
        "category": "/categories/tensor",
        "comparison": f"/compare?a={first.pk}&b={second.pk}",
        "search": "/search?q=problem",
        "problem": "/problems/1-allreduce",
        "kernel": f"/kernels/{done.kernel.source_id}",
        "hostile kernel": f"/kernels/{failed.kernel.source_id}",
        "run": f"/runs/{waiting.id}",
        "submission": f"/submissions/{first.pk}",
        "model": f"/models/{first.model.slug}",
        "submit": "/submit",
        "login": "/account/login",
    }


def hostile_source() -> str:
    return f'def solution(x):\n    """{NAME}"""\n    return {"x" * 5000}\n'


def log_in(context: BrowserContext, live_server: LiveServer, name: str = "owner") -> None:
    client = Client()
    client.force_login(factory.make_user(name))
    cookie = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])


def test_every_page_is_accessible_clean_and_fits_a_phone(
    site: dict[str, str], page: Page, context: BrowserContext, live_server: LiveServer
) -> None:
    log_in(context, live_server)
    page.set_viewport_size({"width": 390, "height": 844})
    for name, address in {**site, "account": "/account"}.items():
        page.goto(address)
        expect(page.locator("h1")).to_have_count(1)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{name} is {width} px wide"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    scheme: Any, site: dict[str, str], browser: Browser, live_server: LiveServer
) -> None:
    # axe is evaluated into the page, which the policy of the site rightly forbids.
    context = browser.new_context(base_url=live_server.url, color_scheme=scheme, bypass_csp=True)
    log_in(context, live_server)
    page = context.new_page()
    found = []
    for name, address in {**site, "account": "/account"}.items():
        page.goto(address)
        page.evaluate(AXE.read_text())
        result = page.evaluate("axe.run()")
        assert len(result["passes"]) > 10, name  # it did look
        found += [
            f"{name}: {violation['id']} {node['html'][:160]}"
            for violation in result["violations"]
            if violation["impact"] in SERIOUS
            for node in violation["nodes"][:2]
        ]
    context.close()
    assert not found, "\n".join(found)


def test_sorting_and_filtering_change_the_address_and_the_rows(
    site: dict[str, str], page: Page
) -> None:
    page.goto("/")
    page.get_by_role("link", name="pass@1", exact=True).click()
    expect(page).to_have_url(re.compile(r"/\?sort=pass1$"))
    expect(page.locator("th[aria-sort]")).to_contain_text("pass@1")
    page.get_by_label("Category").select_option("expert")
    expect(page).to_have_url(re.compile(r"/\?category=expert&sort=pass1$"))
    rows = page.locator("tbody tr.claimed")
    expect(rows).to_have_count(0)


def test_the_theme_is_kept_and_does_not_flash(site: dict[str, str], page: Page) -> None:
    page.goto("/")
    toggle = page.locator("[data-theme-toggle]")
    expect(toggle).to_have_text("Theme: auto")
    toggle.click()
    toggle.click()
    expect(toggle).to_have_text("Theme: dark")
    page.goto("/problems", wait_until="commit")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(18, 20, 22)"


@pytest.mark.parametrize(("name", "figures"), [("board", 3), ("kernel", 3), ("submission", 1)])
def test_figures_are_drawn_and_follow_the_theme(
    name: str, figures: int, site: dict[str, str], page: Page
) -> None:
    page.goto(site[name])
    page.evaluate("document.querySelectorAll('.fold').forEach((part) => (part.open = true))")
    for figure in page.locator("[data-figure]").all():
        figure.scroll_into_view_if_needed()
    expect(page.locator("[data-drawn] svg.main-svg").first).to_be_visible()
    expect(page.locator("[data-drawn]")).to_have_count(figures)
    ink = "getComputedStyle(document.querySelector('.xtick text')).fill"
    before = page.evaluate(ink)
    page.locator("[data-theme-toggle]").click()
    page.locator("[data-theme-toggle]").click()
    page.wait_for_function(f"{ink} !== '{before}'")


def test_a_run_is_followed_to_its_end(site: dict[str, str], page: Page) -> None:
    run = Run.objects.get(pk=site["run"].removeprefix("/runs/"))
    page.goto(site["run"])
    expect(page.locator("[data-field=status]")).to_have_text("queued")
    expect(page.locator("[data-field=queue_position]")).to_have_text("1")
    expect(page.locator("[data-declined]")).to_be_hidden()
    decline(run)
    expect(page.locator("[data-declined]")).to_contain_text(f"host-1 declined: {NO_TRITON}")
    factory.start(run, phase="verify", done=2, total=6)
    expect(page.locator("[data-field=steps]")).to_have_text("2 of 6")
    expect(page.locator("[aria-current=step]")).to_have_text("Verify")
    run.refresh_from_db()
    factory.finish(run, factory.make_report(run, speedup=1.7))
    expect(page.locator(".state.ok")).to_have_text("ok")
    expect(page.locator("[data-run]")).to_have_count(0)
    expect(page.locator(".facts .big").first).to_have_text("1.70×")


def test_a_kernel_is_handed_in_through_the_form(
    site: dict[str, str], page: Page, context: BrowserContext, live_server: LiveServer
) -> None:
    log_in(context, live_server, "author")
    page.goto("/submit?problem=1")
    page.get_by_label("Model").fill("Model Three")
    page.get_by_label("Backend").select_option("pytorch")
    page.get_by_label("Source").fill("def solution(tensor):\n    return tensor\n")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("[data-field=status]")).to_have_text("queued")
    assert Submission.objects.filter(model__name="Model Three").exists()


def test_hostile_text_is_text(site: dict[str, str], page: Page) -> None:
    page.goto(site["hostile kernel"])
    expect(page.locator(".notice")).to_contain_text("<img src=x onerror=alert(1)>[U+202E]")
    expect(page.locator("img")).to_have_count(0)
    expect(page.locator(".source")).to_contain_text("onerror=alert(1)")


def test_pages_read_without_scripts(
    site: dict[str, str], browser: Browser, live_server: LiveServer
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")
    expect(page.locator("tbody tr").first).to_contain_text("Model One")
    page.goto(site["run"])
    expect(page.locator("[data-field=status]")).to_have_text("queued")
    assert page.locator("noscript").count()
    context.close()
