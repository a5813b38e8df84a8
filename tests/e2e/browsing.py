# SPDX-License-Identifier: MIT
"""A real browser, and a record of the errors on its pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, sync_playwright

from tests.e2e.certificates import Pair
from tests.waiting import LIMIT_S

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-background-networking", "--disable-gpu", *arguments],
        )
        yield browser
        browser.close()


def new_page(browser: Browser, **how: object) -> Page:
    """A page that waits as long as all tests do, in place of Playwright's 30 s. `how` is what
    Browser.new_page takes."""
    page = browser.new_page(**how)  # type: ignore[arg-type]
    page.set_default_timeout(LIMIT_S * 1000)
    return page


@contextmanager
def trusting_chromium(pair: Pair) -> Iterator[Browser]:
    """A browser for which this certificate has no error. It keeps answers with it in its cache,
    which it does not while it ignores errors."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")
    with chromium(f"--ignore-certificate-errors-spki-list={pair.key_digest()}") as browser:
        yield browser


class Watch:
    """Records the errors on a page and the requests that it sends."""

    def __init__(self, page: Page) -> None:
        self.troubles: list[str] = []
        self.requests: list[str] = []
        page.on("console", self.on_console)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("request", self.on_request)
        page.on("response", self.on_response)
        page.on("requestfailed", self.on_request_failed)

    def on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.text} {message.location['url']}")

    def on_request(self, request: Request) -> None:
        self.requests.append(request.url)

    def on_request_failed(self, request: Request) -> None:
        # The browser itself aborts what it still loads when it leaves a page.
        if request.failure != "net::ERR_ABORTED":
            self.troubles.append(f"{request.failure}: {request.url}")

    def on_response(self, response: Response) -> None:
        if response.status >= 400:
            self.troubles.append(f"{response.status}: {response.url}")
