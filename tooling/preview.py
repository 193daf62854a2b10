"""Draw the picture that other sites show beside a link to ours, by headless Chromium."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import ViewportSize, sync_playwright

from tooling import places
from tooling.screenshots import SWITCHES

DESIGN = Path(__file__).with_name("preview.html")
VIEWPORT: ViewportSize = {"width": 1200, "height": 630}


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("needs chromium", file=sys.stderr)
        return 1
    made = places.ROOT / "static" / "preview.png"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES)
        page = browser.new_page(viewport=VIEWPORT, color_scheme="light")
        page.goto(DESIGN.as_uri())
        page.screenshot(path=made)
        browser.close()
    print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
