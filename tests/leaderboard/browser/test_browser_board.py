"""The leaderboard and the matrix: every state is an address, with scripts and without."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from leaderboard.models import DataVersion, Hardware
from tests.leaderboard import factory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ROWS = "table.board tbody tr:not(.group):not(.claimed) th.name a"


@pytest.fixture(autouse=True)
def _rows() -> None:
    """Two solves one problem more than One, which is the faster."""
    DataVersion.objects.bump()
    factory.make_publication("Model One")
    one, two = factory.make_problem(), factory.make_problem(2, "gemm", "expert")
    first, second = factory.make_submission("Model One"), factory.make_submission("Model Two")
    factory.make_judged(first, one, speedup=2.0)
    factory.make_judged(second, one, speedup=1.1)
    factory.make_judged(second, two, speedup=1.4)


def test_a_column_head_sorts_both_ways_and_filters_make_an_address(page: Page) -> None:
    page.goto("/")
    head = page.locator("table.board thead").get_by_role("link", name="Speedup")
    head.click()
    expect(page).to_have_url(re.compile(r"/\?sort=-?median_speedup$"))
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Speedup")
    expect(page.locator(ROWS)).to_have_text(["Model One", "Model Two"])
    head.click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Speedup")
    expect(page.locator(ROWS)).to_have_text(["Model Two", "Model One"])
    page.get_by_label("Category").select_option("expert")
    page.wait_for_url(re.compile("category=expert"))
    assert "sort=" in page.url
    expect(page.locator(ROWS)).to_have_text(["Model Two"])


def test_the_address_alone_gives_the_same_page(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Category").select_option("expert")
    page.wait_for_url(re.compile(r"/\?category=expert$"))
    shown = page.locator("table.board").inner_text()
    page.reload()
    assert page.locator("table.board").inner_text() == shown
    expect(page.get_by_label("Category")).to_have_value("expert")
    page.get_by_role("link", name="Remove Category: Expert Parallel").click()
    expect(page).to_have_url(re.compile(r"/$"))
    expect(page.locator(ROWS)).to_have_count(2)
    page.go_back()
    expect(page.locator(ROWS)).to_have_text(["Model Two"])
    expect(page.get_by_label("Category")).to_have_value("expert")


def test_hardware_is_chosen_and_chosen_back(page: Page) -> None:
    """What follows the hardware, such as ranks, is the page's choice again."""
    Hardware.objects.create(slug="h200x4", title="4 x H200", device="cuda", max_world_size=4)
    kernel = factory.make_kernel(factory.make_submission("Model Four"), factory.make_problem())
    run = factory.make_run(kernel, hardware_id="h200x4", world_size=4, size="large")
    factory.finish(run, factory.make_report(run))
    page.goto("/")
    hardware = page.get_by_label("Hardware", exact=True)
    hardware.select_option("cpu")
    page.wait_for_url(re.compile(r"/\?hardware=cpu$"))
    expect(page.locator(ROWS)).to_have_text(["Model Two", "Model One"])
    hardware.select_option("h200x4")
    page.wait_for_url(re.compile(r"/\?$"))
    expect(page.locator(ROWS)).to_have_text(["Model Four"])
    page.goto("/?ranks=2")
    hardware.select_option("h200x4")
    page.wait_for_url(re.compile(r"/\?hardware=h200x4$"))
    expect(page.locator(ROWS)).to_have_text(["Model Four"])


def test_who_goes_back_finds_controls_as_the_address_says(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Threshold").select_option("1.1")
    page.wait_for_url(re.compile(r"p=1\.1"))
    page.get_by_label("Category").select_option("expert")
    page.wait_for_url(re.compile("category=expert"))
    for value in ("1.1", "1"):
        page.go_back()
        expect(page.get_by_label("Category")).to_have_value("")
        expect(page.get_by_label("Threshold")).to_have_value(value)
    page.get_by_label("Harness").select_option("zero-shot")
    page.wait_for_url(re.compile(r"/\?harness=zero-shot$"))


def test_a_threshold_applies_and_keeps_the_focus_and_the_order(page: Page) -> None:
    page.goto("/?sort=pass1")
    threshold = page.get_by_label("Threshold")
    threshold.focus()
    threshold.select_option("1.5")
    page.wait_for_url(re.compile(r"p=1\.5"))
    expect(page.locator("table.board thead")).to_contain_text("Over 1.5× NCCL")
    assert "sort=pass1" in page.url
    expect(threshold).to_be_focused()


def test_columns_and_rows_unfold(page: Page) -> None:
    page.goto("/")
    heads = page.locator("table.board thead")
    expect(heads).not_to_contain_text("pass@1")
    published = page.locator("tr.claimed.under")
    expect(published).to_have_count(1)
    expect(published).to_be_hidden()
    page.get_by_text("1 more: published").click()
    expect(published).to_be_visible()
    page.get_by_label("Columns").select_option("all")
    page.wait_for_url(re.compile("columns=all"))
    expect(heads).to_contain_text("pass@1")
    expect(page.get_by_role("button", name="Apply")).to_be_hidden()


def test_filters_fold_on_a_phone_and_say_what_is_set(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/?category=expert")
    expect(page.get_by_label("Category")).to_be_hidden()
    expect(page.get_by_role("link", name="Remove Category: Expert Parallel")).to_be_visible()
    page.locator(".filters summary").first.click()
    page.get_by_label("Harness").select_option("zero-shot")
    page.wait_for_url(re.compile("harness=zero-shot"))
    expect(page.get_by_label("Category")).to_be_visible()


def test_ticked_rows_are_compared_and_another_is_picked(page: Page) -> None:
    page.goto("/")
    sticks = "getComputedStyle(document.querySelector('form.compare')).position"
    assert page.evaluate(sticks) == "static"
    for box in page.get_by_role("checkbox").all():
        box.check()
    assert page.evaluate(sticks) == "sticky"
    page.get_by_role("button", name="Compare ticked rows").click()
    expect(page).to_have_url(re.compile(r"/compare\?a=\d+&b=\d+"))
    expect(page.locator("table.sides thead")).to_contain_text("Model Two")
    page.goto("/compare")
    expect(page.locator("table.sides")).to_have_count(0)
    for letter in "ab":
        picker = page.locator(f"#filter-{letter}")
        value = picker.locator("option").nth(1 if letter == "a" else 2).get_attribute("value")
        picker.select_option(value)
        page.wait_for_url(re.compile(f"{letter}={value}"))
    expect(page.locator("table.sides thead")).to_contain_text("Model One")


def test_a_cell_of_the_matrix_leads_to_its_run_and_the_run_to_its_kernel(page: Page) -> None:
    page.goto("/matrix")
    page.get_by_label("Category").select_option("expert")
    page.wait_for_url(re.compile("category=expert"))
    page.get_by_role("link", name="Skip the table").press("Enter")
    expect(page.locator("#below-matrix")).to_be_focused()
    cell = page.locator("table.matrix tbody td a")
    expect(cell).to_have_text("1.40")
    cell.click()
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    expect(page.locator("h1")).to_contain_text("Problem gemm")
    expect(page.locator(".lede")).to_contain_text("by Model Two")
    page.get_by_role("link", name="Source, differences and other attempts").click()
    expect(page).to_have_url(re.compile(r"/kernels/[0-9a-f]{64}\?run=[0-9a-f-]{36}#source$"))
    expect(page.locator(".source").first).to_contain_text("def solution")


def test_without_scripts_pages_are_filtered_by_their_button(plain: Page) -> None:
    plain.goto("/")
    plain.get_by_label("Category").select_option("expert")
    plain.get_by_role("button", name="Apply").click()
    expect(plain.locator(ROWS)).to_have_text(["Model Two"])
    plain.get_by_text("More filters").click()
    expect(plain.get_by_label("Backend")).to_be_visible()
    expect(plain.locator("[data-theme-toggle]")).to_be_hidden()
    expect(plain.get_by_text("Figure is drawn when scripts are allowed").first).to_be_visible()
    plain.locator(".figure").first.get_by_role("link", name="Table").click()
    expect(plain.locator("h1")).to_contain_text("How many kernels are how fast: ")
    expect(plain.locator("tbody tr").first).to_be_visible()
    plain.goto("/matrix?category=tensor")
    plain.get_by_label("Category").select_option("")
    plain.get_by_role("button", name="Apply").click()
    expect(plain.locator("table.matrix tbody td a")).to_have_count(3)
    plain.locator("table.matrix tbody td a").first.click()
    expect(plain.locator(".state.ok").first).to_have_text("ok")


def test_a_keyboard_reaches_the_content_and_the_filters(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    skip.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for control in page.locator(
        "main :is(.answer a, .how a, .front-row, .filters select:visible)"
    ).all():
        page.keyboard.press("Tab")
        expect(control).to_be_focused()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('table.board thead') !== null"):
            break
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) != "none"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("sort="))
