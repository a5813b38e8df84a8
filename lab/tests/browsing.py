# SPDX-License-Identifier: MIT
"""A browser for pages of the lab: the screens, and what went wrong on a page."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from weir_lab.report import page as pages

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
LAPTOP = (1366, 768)
WAIT_MS = 240_000  # a busy machine may give a browser one percent of a processor
SCREENS = {"phone": (390, 844), "laptop": LAPTOP, "wide": (1920, 1080)}
needs_browser = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}"
)


def opened(
    browser: Browser, path: Path, width: int, scheme: str, height: int = 900
) -> tuple[Page, list[str]]:
    dark = scheme == "dark"
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    page.set_default_timeout(WAIT_MS)
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: asked(request.url, troubles))
    page.goto(path.as_uri())
    return page, troubles


def asked(url: str, troubles: list[str]) -> None:
    if not url.startswith("data:") and not url.endswith(pages.PAGE):
        troubles.append(f"asked for {url}")
