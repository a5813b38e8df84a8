# SPDX-License-Identifier: MIT
"""The report, as text and as Chromium shows it."""

import csv
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from synthetic import HELD_OUT, TRAINING, repair, sweep
from weir_lab.capacity import answers, choice
from weir_lab.capacity.sweep import SERVER, Sweep
from weir_lab.report import page as pages
from weir_lab.report import sweeps
from weir_lab.report.chart import Chart

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
HOSTILE = "</script><script>document.title='owned'</script>"

needs_browser = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}"
)


@pytest.fixture(scope="module")
def measured() -> Sweep:
    truth = repair(1, 0.001, 0.008)
    return sweep(truth, TRAINING + HELD_OUT, think_s=0.008, servers=1, service_s=0.001, seed=1)


@pytest.fixture(scope="module")
def report(measured: Sweep) -> pages.Report:
    found = choice.choose(measured.up_to(20), draws=20)
    carried = answers.capacity(found)
    held_out = measured.above(20)
    section = pages.Section(
        title="Capacity of epoll",
        verdict=sweeps.findings(found, carried, measured, held_out),
        text=["A sweep of users."],
        pictures=[
            sweeps.throughput("epoll", measured, found, carried),
            sweeps.response("epoll", measured, found),
            sweeps.latency_throughput("epoll", measured),
            sweeps.utilisation("epoll", measured),
            sweeps.prediction("epoll", measured, found),
        ],
        tables=[sweeps.scores("epoll", found, held_out), sweeps.levels("epoll", measured)],
    )
    return pages.Report(
        title="weir-lab capacity",
        sections=[section],
        environment={"kernel": "Linux", "command": "weir-lab capacity " + HOSTILE},
        data=[{"kind": "point", "text": HOSTILE}],
        notes=["Rates of other machines are not comparable."],
    )


@pytest.fixture(scope="module")
def written(report: pages.Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pages.write(report, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-background-networking", "--disable-gpu"],
        )
        yield browser
        browser.close()


def opened(browser: Browser, path: Path, width: int, scheme: str) -> tuple[Page, list[str]]:
    dark = scheme == "dark"
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: asked(request.url, troubles))
    page.goto(path.as_uri())
    return page, troubles


def asked(url: str, troubles: list[str]) -> None:
    if not url.startswith("data:") and not url.endswith(pages.PAGE):
        troubles.append(f"asked for {url}")


def test_the_verdict_comes_first_and_says_the_figures(report: pages.Report) -> None:
    text = pages.render(report)
    verdict = text.index('class="verdict"')
    assert verdict < text.index("<svg") < text.index('id="environment"') < text.index('id="data"')
    assert "Saturates at N* = 9" in text
    assert "The bottleneck is the server CPU" in text


def test_a_table_and_a_csv_lie_beside_the_page(written: Path, measured: Sweep) -> None:
    beside = {path.name for path in written.parent.iterdir()}
    for name in ("throughput", "response", "load", "cpu", "prediction"):
        assert {f"epoll-{name}.{kind}" for kind in ("svg", "png", "csv")} <= beside
    with (written.parent / "epoll-throughput.csv").open() as file:
        rows = list(csv.DictReader(file))
    points = [row for row in rows if row["series"] == "measured, training"]
    assert [float(row["users"]) for row in points] == list(measured.up_to(20).users)
    with (written.parent / "epoll-levels.csv").open() as file:
        assert len(list(csv.reader(file))) == 1 + len(measured.levels)


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (380, "light")])
def test_a_browser_shows_it_whole(
    browser: Browser, written: Path, width: int, scheme: str, tmp_path: Path
) -> None:
    page, troubles = opened(browser, written, width, scheme)
    assert troubles == []
    assert page.title() == "weir-lab capacity"  # what was embedded has not run
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    pictures = page.locator("figure svg")
    assert pictures.count() == 5
    boxes = [pictures.nth(i).bounding_box() for i in range(5)]
    assert all(box and box["width"] > 300 and box["height"] > 150 for box in boxes)
    embedded = json.loads(page.locator("#data").text_content() or "")
    assert embedded == [{"kind": "point", "text": HOSTILE}]
    ink = page.eval_on_selector("figure svg", "svg => getComputedStyle(svg).color")
    assert ink == ("rgb(228, 232, 235)" if scheme == "dark" else "rgb(22, 25, 29)")
    page.screenshot(
        path=os.environ.get("LAB_PICTURES", str(tmp_path)) + f"/{width}{scheme}.png", full_page=True
    )
    page.close()


@needs_browser
def test_paper_has_it_in_ink(browser: Browser, written: Path, tmp_path: Path) -> None:
    page, _ = opened(browser, written, 1000, "dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    paper = tmp_path / "report.pdf"
    page.pdf(path=paper)
    assert paper.read_bytes().startswith(b"%PDF")
    page.close()


def test_no_two_series_differ_by_colour_alone() -> None:
    chart = Chart(name="x", title="x", x="users", y="requests/s")
    for number in range(7):
        chart.line(str(number), [0, 1], [0, number], chart.style())
    svg = chart.finish("").svg
    dashes = set(re.findall(r"stroke-dasharray: ([0-9. ,]+)", svg)) | {"solid"}
    # Grid lines are solid; of the seven series one is solid and six have dashes of their own.
    assert len(dashes) == 7


def test_a_picture_takes_its_ink_from_the_page() -> None:
    chart = Chart(name="x", title="x", x="users", y="requests/s")
    chart.line("a", [0, 1], [0, 1], 0)
    picture = chart.finish("")
    assert "currentColor" in picture.svg
    assert "#000000" not in picture.svg
    assert picture.svg.startswith("<svg")
    assert SERVER not in picture.csv
