# SPDX-License-Identifier: MIT
"""What tests share: the report of a measured sweep, made once, and weir-lab in this process."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

import measured
from browsing import CHROMIUM
from command import LabHere
from weir_lab import cli
from weir_lab.experiments.experiment import stop_asked
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


@pytest.fixture
def lab_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[LabHere]:
    """Runs weir-lab in this process: its exit status and its standard error."""
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["weir-lab", *words])
        status = 0
        try:
            cli.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        return status, " ".join(capsys.readouterr().err.split())

    yield run
    stop_asked.clear()
    for number, handler in before.items():
        signal.signal(number, handler)
