"""The README's pictures of the front page, from a running demo: `python -m tests.browser.pictures URL`."""

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser.visitor import THEMES, WIDTHS, Visitor
from tests.selection import program

FOLDER = Path(__file__).resolve().parents[2] / ".github"
NAMES = {"light": "leaderboard.png", "dark": "leaderboard-dark.png"}
LAST = ".glance"
"""The pictures end below this part of the page."""


def main(url: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("browser"))
        for theme in THEMES:
            visitor = Visitor.of(browser, url.rstrip("/"))
            visitor.resize(WIDTHS[-1], theme)
            visitor.go("/")
            visitor.settle()
            box = visitor.page.locator(LAST).bounding_box()
            assert box is not None
            area = {"x": 0, "y": 0, "width": WIDTHS[-1], "height": box["y"] + box["height"]}
            picture = BytesIO(visitor.page.screenshot(clip=area, full_page=True))  # type: ignore[arg-type]
            palette = Image.open(picture).convert("RGB").quantize(256, kmeans=3, dither=Image.Dither.NONE)
            palette.save(FOLDER / NAMES[theme], optimize=True)  # a third of the bytes
            assert visitor.faults == []
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
