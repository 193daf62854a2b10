"""Chromium for the tests of this folder, and pages that fail a test when they complain."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)
from pytest_django.live_server_helper import LiveServer

from tests.leaderboard import factory
from tests.leaderboard.browser import cast

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    *("--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PATIENCE_MS = 30_000

LogIn = Callable[[], None]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    # Playwright runs an event loop in this thread, where Django would refuse to touch the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def context(browser: Browser, live_server: LiveServer) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=live_server.url)
    made.set_default_timeout(PATIENCE_MS)
    yield made
    made.close()


@pytest.fixture
def complaints() -> list[str]:
    """What pages complained of: a test that expects a complaint clears them."""
    return []


@pytest.fixture
def page(context: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    """A page that fails the test for every error in its console, policy breaches included."""
    made = context.new_page()

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{made.url}: {message.text}")

    made.on("console", hear)
    made.on("pageerror", lambda error: complaints.append(f"{made.url}: {error}"))
    made.on("dialog", lambda dialog: complaints.append(f"{made.url} asks: {dialog.message}"))
    yield made
    # What is still asked for must not meet a database that is being emptied.
    made.goto("about:blank")
    assert not complaints


@pytest.fixture
def plain(browser: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A page without scripts."""
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def site(live_server: LiveServer) -> dict[str, str]:
    return cast.make_site()


@pytest.fixture
def log_in(context: BrowserContext, live_server: LiveServer) -> LogIn:
    """As the owner of the submissions."""

    def act() -> None:
        client = Client()
        client.force_login(factory.make_user())
        cookie = client.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])

    return act


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, settings: Any) -> None:
    """Snapshots of a test are its own."""
    settings.STATE_DIR = tmp_path
