"""Every page: no complaint in the console, no markup of others, readable on a phone, accessible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.leaderboard.browser.cast import SHOWN
from tests.leaderboard.browser.conftest import LogIn
from tests.leaderboard.frozen import freeze

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

AXE = (Path(__file__).parent.parent / "vendor/axe.min.js").read_text()
PARTS = 3
PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1440, "height": 900}
# Whatever was written by a submitter and became part of the page, and characters that reorder it.
FOREIGN = """() => [
    ...[...document.querySelectorAll("[onerror], img[src=x]")].map((node) => node.outerHTML),
    ...(document.documentElement.innerHTML.match(/[\\u202a-\\u202e\\u2066-\\u2069]/g) ?? []),
]"""
TOO_WIDE = """() => [...document.body.querySelectorAll("*")]
    .filter((node) => node.getBoundingClientRect().right > innerWidth && !node.closest(".scroll"))
    .slice(0, 3).map((node) => node.outerHTML.slice(0, 120))"""
# Dark colours change contrast and nothing else.
RULES = {"light": None, "dark": ["color-contrast", "link-in-text-block"]}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_clean_fits_a_phone_and_is_accessible(
    part: int, site: dict[str, str], page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    log_in()
    freeze()
    site["snapshot"] = "/snapshots/2026-11"
    faults = []
    for name, address in sorted(site.items())[part::PARTS]:
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(PHONE)
        answer = page.goto(address)
        expect(page.locator("h1")).to_have_count(1)
        page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
            faults.append(f"{name} is too wide: {page.evaluate(TOO_WIDE)}")
        faults += [f"{name} lets through {node}" for node in page.evaluate(FOREIGN)]
        faults += small_targets(page, name)
        for size in (PHONE, DESK):
            page.set_viewport_size(size)
            faults += [f"{fault} at {size['width']}" for fault in axe(page, name)]
        if answer is not None and answer.status == 404:
            complaints.clear()  # Chromium's own line about the address
    assert not faults, "\n".join(faults)


def small_targets(page: Page, name: str) -> list[str]:
    """What fingers miss: less than 24 pixels wide or high, with others beside it."""
    page.evaluate(AXE)
    rules = {"resultTypes": ["violations"], "runOnly": ["target-size"]}
    found = page.evaluate("options => axe.run(options)", rules)["violations"]
    nodes = [node["html"][:160] for violation in found for node in violation["nodes"][:2]]
    return [f"{name} has a small target: {html}" for html in nodes]


def axe(page: Page, name: str) -> list[str]:
    """Violations of any gravity, in light and in dark colours."""
    page.evaluate(AXE)
    found = []
    for scheme, rules in RULES.items():
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = rules
        result = page.evaluate("options => axe.run(options)", options)
        assert result["passes"], name  # it did look
        found += [
            f"{name} in {scheme}: {violation['id']} {node['html'][:160]}"
            for violation in result["violations"]
            for node in violation["nodes"][:2]
        ]
    return found


def test_hostile_texts_are_shown_as_texts(site: dict[str, str], page: Page) -> None:
    for name in ("failure", "failed"):
        page.goto(site[name])
        expect(page.locator("#verdict")).to_contain_text(SHOWN)
        expect(page.locator("#logs")).to_contain_text(SHOWN)
    page.goto(site["failure"])
    expect(page.locator(".source").first).to_contain_text("onerror=alert(1)")
    page.goto("/")
    expect(page.locator("table.board")).to_contain_text(SHOWN)


# Text of a caption or a sentence is as high as its line, and a source's numbers as its lines.
SMALL = """() => [...document.querySelectorAll("td a, th a, summary, .tools a, .toc a, .crumbs a")]
    .map((node) => [node, node.getBoundingClientRect()])
    .filter(([, box]) => box.height && Math.min(box.height, box.width) < 23.9)
    .filter(([node]) => !node.closest("caption, .highlight"))
    .map(([node]) => node.outerHTML.slice(0, 120))"""


def test_every_link_of_a_table_is_large_enough_for_a_finger(
    site: dict[str, str], page: Page
) -> None:
    page.set_viewport_size(PHONE)
    for address in (*map(site.get, ("board", "submission", "problem", "model")), "/matrix"):
        page.goto(address or "")
        assert page.evaluate(SMALL) == [], address


def test_the_contents_of_a_long_page_follow(site: dict[str, str], page: Page) -> None:
    for size, is_open in ((DESK, True), (PHONE, False)):
        page.set_viewport_size(size)
        page.goto(site["methodology"])
        link = page.locator(".toc a").first
        assert link.is_visible() == is_open
        page.evaluate("scrollTo({top: 4000, behavior: 'instant'})")
        expect(page.locator(".toc")).to_be_in_viewport()
    page.locator(".toc summary").click()
    page.locator(".toc a", has_text="Glossary").click()
    expect(page.locator("#glossary")).to_be_in_viewport()
    expect(link).not_to_be_visible()
