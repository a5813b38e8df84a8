# SPDX-License-Identifier: MIT
"""The report of a measured sweep, made once for all tests that read it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

import measured
from browsing import CHROMIUM
from weir_lab.report import page as pages


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> pages.Report:
    """The report of a sweep whose records try to run a script."""
    found = measured.lines("pool-ka")
    found[0]["machine"]["command"] += f" {measured.HOSTILE}"
    found[2]["text"] = measured.HOSTILE
    return measured.report_of(found, tmp_path_factory.mktemp("pool"))


@pytest.fixture(scope="session")
def written(report: pages.Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of this report, with its files beside it."""
    return pages.write(report, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, for all tests."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-background-networking", "--disable-gpu"],
        )
        yield browser
        browser.close()
