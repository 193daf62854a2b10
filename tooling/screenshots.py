"""Take pictures of the running site for the docs: real pages, real data, headless Chromium."""

from __future__ import annotations

import shutil
import sys

from playwright.sync_api import ViewportSize, sync_playwright

from tooling import places, processes, services

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
    if site is None or chromium is None:
        print("needs a running site (make up) and chromium", file=sys.stderr)
        return 1
    places.IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES)
        page = browser.new_page(viewport=VIEWPORT, device_scale_factor=2)
        for name, path in PAGES.items():
            page.goto(f"http://127.0.0.1:{site.port}{path}", wait_until="networkidle")
            page.screenshot(path=places.IMAGES / f"{name}.png")
            print(places.IMAGES / f"{name}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
