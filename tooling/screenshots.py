"""Take pictures of the running site for the docs, and keep the headings that they show."""

from __future__ import annotations

import shutil
import sys

from playwright.sync_api import ViewportSize, sync_playwright

from tooling import headings, places, processes, services

PAGES = {
    "leaderboard": "/",
    "categories": "/categories",
    "problem": "/problems/17-rope_allgather",
    "hardware": "/hardware/h200x2",
}
VIEWPORT: ViewportSize = {"width": 1440, "height": 900}
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def main() -> int:
    site, chromium = processes.find(services.SITE), shutil.which("chromium")
    if site is None or site.port is None or chromium is None:
        print("needs a running site (make up) and chromium", file=sys.stderr)
        return 1
    take(site.port, chromium)
    return 0


def take(port: int, chromium: str) -> None:
    """Take the pictures of a site with the shipped data that answers on this port."""
    places.IMAGES.mkdir(parents=True, exist_ok=True)
    shown: dict[str, dict[str, list[str]]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES)
        page = browser.new_page(viewport=VIEWPORT, device_scale_factor=2)
        for name, path in PAGES.items():
            answer = page.goto(f"http://127.0.0.1:{port}{path}", wait_until="networkidle")
            shown[name] = {path: headings.of_page(answer.text() if answer else "")}
            page.screenshot(path=places.IMAGES / f"{name}.png")
            print(places.IMAGES / f"{name}.png")
        browser.close()
    headings.keep(shown)


if __name__ == "__main__":
    sys.exit(main())
