"""Figures are drawn on every page that has some, fit a phone, follow the theme, can be saved."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from leaderboard.figures.frame import LEAST_DRAWN
from leaderboard.models import Problem
from tests.leaderboard import factory
from tests.leaderboard.browser.cast import GPUS, NAME

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# The fewest figures of a page.
FEWEST = {
    **{"board": 4, "categories": 1, "category": 1, "problems": 1, "problem": 1, "model": 2},
    **{"submission": 3, "kernel": 3, "good": 3, "class": 1},
    **{"figure": 1, "heat": 1, "timeline": 1},
}
INK = "[...document.querySelectorAll('.xtick text, .gtitle')].map((n) => getComputedStyle(n).fill)"


@pytest.mark.parametrize("names", [tuple(FEWEST)[::2], tuple(FEWEST)[1::2]], ids=["a", "b"])
def test_figures_are_drawn_and_follow_the_theme(
    names: tuple[str, ...], site: dict[str, str], page: Page
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for name in names:
        page.emulate_media(color_scheme="light")
        page.goto(site[name])
        draw_all(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        assert page.locator("[data-figure]").count() >= FEWEST[name], name
        before = page.evaluate(INK)
        assert before, name
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"before => {INK}.every((ink, n) => ink !== before[n])", arg=before)


BOXES = """(parts) => parts.map((part) => {
    const box = part.getBoundingClientRect();
    return [box.left, box.right];
})"""
OUTSIDE = """(parts) => parts.filter((part) => {
    const frame = part.closest('.plot').getBoundingClientRect(), own = part.getBoundingClientRect();
    return own.left < frame.left || own.right > frame.right || own.top < frame.top;
}).map((part) => part.textContent)"""


def test_names_and_titles_stay_inside_a_narrow_frame(site: dict[str, str], page: Page) -> None:
    problem = Problem.objects.get(number=1)
    for n in range(4):
        model = f"A model with a long name, and its number {n}"
        factory.make_judged(factory.make_submission(model), problem, speedup=2.0)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/categories")
    draw_all(page)
    names = page.locator("[data-name=category-heat] .xtick text")
    assert names.count() == page.evaluate("document.querySelector('.plot').data[0].x.length")
    assert names.evaluate_all(OUTSIDE) == []
    page.goto("/")
    draw_all(page)
    titles = page.locator("[data-name=spreads] .plot .xtitle, [data-name=spreads] .plot .ytick")
    assert titles.evaluate_all(OUTSIDE) == []


def test_short_names_stay_apart_in_a_narrow_frame(site: dict[str, str], page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(site["class"])
    draw_all(page)
    told = page.locator("[data-name=hardware-limits] .ytick text").all_text_contents()
    assert len(set(told)) == len(told) > 4


def test_rows_of_one_model_tell_their_numbers_in_a_narrow_frame(
    site: dict[str, str], page: Page
) -> None:
    rows = [factory.make_submission("A model of a long name") for _ in range(2)]
    for n in range(70, 70 + LEAST_DRAWN):
        problem = factory.make_problem(n, f"p{n}")
        for submission, speedup in zip(rows, (0.003, 20.0), strict=True):
            factory.make_judged(submission, problem, speedup=speedup, **GPUS)
    page.set_viewport_size({"width": 390, "height": 844})
    for figure in ("failure-modes", "spreads"):
        page.goto(f"/figures/{figure}")
        draw_all(page)
        told = page.locator(".ytick text").all_text_contents()
        for one in rows:
            assert any(f"no. {one.pk}, n = {LEAST_DRAWN}" in text for text in told), (figure, told)
    marks = page.locator(".xtick text").evaluate_all(BOXES)
    assert 3 <= len(marks) < 10
    assert all(right < left for (_, right), (left, _) in pairwise(sorted(marks)))


def draw_all(page: Page) -> None:
    page.evaluate("document.querySelectorAll('.fold').forEach((part) => (part.open = true))")
    figures = page.locator("[data-figure]")
    for figure in figures.all():
        figure.scroll_into_view_if_needed()
    expect(page.locator("[data-figure]:not([data-drawn])")).to_have_count(0)
    expect(page.locator("[data-drawn] svg.main-svg:first-child")).to_have_count(figures.count())


def test_points_lead_to_runs_and_a_model_can_be_pinned(site: dict[str, str], page: Page) -> None:
    submission = factory.make_submission("Pinned Model")
    for n in range(91, 94):
        factory.make_judged(submission, factory.make_problem(n, f"p{n}"), **GPUS)
    page.goto("/")
    draw_all(page)
    key = page.locator("[data-name=fast-p] .keys button", has_text="Pinned Model")
    key.click()
    expect(key).to_have_attribute("aria-pressed", "true")
    assert page.url.endswith("#pin=Pinned%20Model")
    dimmed = "document.querySelector('[data-name=spreads] .plot').data.map((one) => one.opacity)"
    assert sorted({*page.evaluate(dimmed)}) in ([0.12, 1], [1])
    plot = page.locator("[data-name=spreads] .plot")
    plot.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-name=spreads] [aria-live]")).to_contain_text("Enter opens")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/**")


def test_the_button_repaints_figures_and_its_choice_is_kept(
    site: dict[str, str], page: Page
) -> None:
    page.goto(site["class"])
    draw_all(page)
    before = page.evaluate(INK)
    toggle = page.locator("[data-theme-toggle]")
    expect(toggle).to_have_text("Theme: auto")
    toggle.click()
    toggle.click()
    expect(toggle).to_have_text("Theme: dark")
    page.wait_for_function(f"before => {INK}.every((ink, n) => ink !== before[n])", arg=before)
    page.goto("/problems", wait_until="domcontentloaded")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.wait_for_function("getComputedStyle(document.body).backgroundColor === 'rgb(18, 20, 22)'")
    expect(page.locator("[data-theme-toggle]")).to_have_text("Theme: dark")


def test_a_figure_tells_names_as_texts_and_can_be_saved(site: dict[str, str], page: Page) -> None:
    page.goto("/")
    figure = page.locator("[data-name=failure-modes]")
    figure.scroll_into_view_if_needed()
    expect(figure.locator(".main-svg").first).to_contain_text(NAME[:20])
    figure.locator(".point path").first.hover(force=True)
    expect(figure.locator(".hoverlayer .hovertext").first).to_be_visible()
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as download:
            figure.get_by_role("button", name=kind).click()
        assert download.value.suggested_filename == f"failure-modes.{kind.lower()}"
        picture = Path(download.value.path()).read_bytes()
        assert picture.startswith(start)
        if kind == "SVG":
            assert b"How kernels fail" in picture
            assert b"/figures/failure-modes" in picture
