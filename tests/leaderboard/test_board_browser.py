"""What the board does in a browser, with scripts and without."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from leaderboard.models import DataVersion
from tests.leaderboard import factory
from tests.leaderboard.test_browser import browser, context, page

__all__ = ["browser", "context", "page"]

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _rows() -> None:
    DataVersion.objects.get_or_create(pk=1)
    factory.make_publication()
    one, two = factory.make_problem(), factory.make_problem(2, "gemm", "expert")
    first, second = factory.make_submission("Model One"), factory.make_submission("Model Two")
    factory.make_judged(first, one, speedup=2.0)
    factory.make_judged(second, one, speedup=1.1)
    factory.make_judged(second, two, speedup=1.4)


def test_the_slider_says_its_value_rests_and_applies(page: Page) -> None:
    page.goto("/?sort=pass1")
    slider = page.locator("#filter-p")
    slider.focus()
    for _ in range(3):
        slider.press("ArrowRight")
    expect(page.locator("output")).to_have_text("1.15×")
    page.wait_for_url(re.compile(r"p=1\.15"))
    expect(page.locator("table.board thead")).to_contain_text("fast₁.₁₅@1")
    assert "sort=pass1" in page.url
    expect(slider).to_be_focused()


def test_filters_fold_on_a_phone_and_say_what_is_set(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/?category=expert")
    expect(page.get_by_label("Category")).to_be_hidden()
    expect(page.get_by_role("link", name="Remove Category: Expert Parallel")).to_be_visible()
    page.locator(".filters summary").first.click()
    page.get_by_label("Harness").select_option("zero-shot")
    page.wait_for_url(re.compile("harness=zero-shot"))
    expect(page.get_by_label("Category")).to_be_visible()


def test_ticked_rows_are_compared(page: Page) -> None:
    page.goto("/")
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare ticked rows").click()
    expect(page).to_have_url(re.compile(r"/compare\?a=\d+&b=\d+"))


def test_the_heat_map_is_drawn_within_the_policy(page: Page) -> None:
    page.goto("/categories")
    page.locator(".figure").scroll_into_view_if_needed()
    expect(page.locator(".figure[data-drawn]")).to_have_count(1)


def test_without_scripts_the_board_is_filtered_by_its_button(
    browser: Browser, live_server: LiveServer
) -> None:
    plain: BrowserContext = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    shown = plain.new_page()
    shown.goto("/")
    shown.get_by_label("Category").select_option("expert")
    shown.get_by_role("button", name="Apply").click()
    expect(shown.locator("table.board tbody th.name")).to_have_count(1)
    shown.get_by_text("More filters").click()
    expect(shown.get_by_label("Backend")).to_be_visible()
    plain.close()
