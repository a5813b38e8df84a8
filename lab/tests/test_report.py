# SPDX-License-Identifier: MIT
"""The report, as text and as Chromium shows it."""

import csv
import io
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hdrh.histogram import HdrHistogram
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from synthetic import HELD_OUT, TRAINING, repair, sweep
from weir_lab.capacity import answers, choice
from weir_lab.capacity.sweep import SERVER, Sweep
from weir_lab.report import distribution, sweeps
from weir_lab.report import page as pages
from weir_lab.report.chart import TICKS_MAX, Chart, PlainLog, look

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
PICTURES = 7
HOSTILE = "</script><script>document.title='owned'</script>"

needs_browser = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}"
)


def loads() -> list[dict[str, object]]:
    """Records of two levels, in the form of weir load."""
    found: list[dict[str, object]] = []
    for users, repeat in ((1, 0), (20, 0), (20, 1)):
        histogram = HdrHistogram(1, 3_600_000_000_000, 3)
        drawn = random.Random(users + repeat)
        for _ in range(3000):
            histogram.record_value(int(drawn.expovariate(1 / (users * 1e6))) + 1)
        series = [{"seconds": s, "rate": 900.0 + repeat, "errors": 0} for s in (1.0, 1.0, 0.5)]
        load = {"histogram": histogram.encode().decode(), "series": series, "warmup_s": 0.3}
        found.append({"users": users, "load": load})
    return found


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
            *sweeps.spectra("epoll", loads()),
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


def test_the_verdict_comes_first_with_its_figures(report: pages.Report) -> None:
    text = pages.render(report)
    verdict = text.index('class="verdict"')
    assert verdict < text.index("<svg") < text.index('id="environment"') < text.index('id="data"')
    assert "Saturates at N* = 9" in text
    assert "The bottleneck is the server CPU" in text


def test_a_table_and_a_csv_are_beside_the_page(written: Path, measured: Sweep) -> None:
    beside = {path.name for path in written.parent.iterdir()}
    for name in ("throughput", "response", "load", "cpu", "prediction"):
        assert {f"epoll-{name}.{kind}" for kind in ("svg", "png", "csv")} <= beside
    with (written.parent / "epoll-throughput.csv").open() as file:
        rows = list(csv.DictReader(file))
    points = [row for row in rows if row["series"] == "measured, training"]
    assert [float(row["users"]) for row in points] == list(measured.up_to(20).users)
    with (written.parent / "epoll-levels.csv").open() as file:
        assert len(list(csv.reader(file))) == 1 + len(measured.levels)


# For each text the worst contrast with what lies behind it, as WCAG 2 computes it.
CONTRASTS = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const found = parse(getComputedStyle(node).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const found = {};
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const ink = parse(node.closest("svg") ? style.fill : style.color);
    const here = ratio(light(ink), light(behind(node)));
    found[node.tagName] = Math.min(found[node.tagName] ?? 99, here);
  }
  const back = light(behind(document.body));
  for (const node of document.querySelectorAll("figure svg [style]")) {
    for (const name of ["--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6"]) {
      if (!node.getAttribute("style").includes(name)) continue;
      const style = getComputedStyle(node);
      const colour = node.getAttribute("style").includes("stroke: var") ? style.stroke : style.fill;
      if (colour !== "none") found[name] = ratio(light(parse(colour)), back);
    }
  }
  return found;
}"""

# What a checker of accessibility complains of first.
COMPLAINTS = """() => {
  const found = [];
  const seen = new Set();
  for (const node of document.querySelectorAll("[id]")) {
    if (seen.has(node.id)) found.push("two have the id " + node.id);
    seen.add(node.id);
  }
  for (const name of ["aria-labelledby", "href"])
    for (const node of document.querySelectorAll(`[${name}]`)) {
      const value = node.getAttribute(name);
      if (name === "href" && !value.startsWith("#")) continue;
      if (!seen.has(value.replace("#", ""))) found.push(name + " leads nowhere: " + value);
    }
  for (const svg of document.querySelectorAll("figure svg")) {
    const title = svg.querySelector("title");
    if (svg.getAttribute("role") !== "img" || !title || title.textContent.length < 40)
      found.push("a picture is not described: " + svg.closest("figure").dataset.name);
  }
  let level = 0;
  for (const head of document.querySelectorAll("h1, h2, h3, h4")) {
    const here = Number(head.tagName[1]);
    if (here > level + 1) found.push("a level is left out before " + head.textContent);
    level = here;
  }
  for (const table of document.querySelectorAll("table")) {
    for (const cell of table.querySelectorAll("th"))
      if (!["col", "row"].includes(cell.scope)) found.push("a head of nothing: " + cell.outerHTML);
    for (const row of table.tBodies[0].rows)
      if (row.querySelectorAll("th").length !== 1) found.push("a row without a head");
  }
  for (const node of document.querySelectorAll("button, a"))
    if (!node.textContent.trim()) found.push("nothing to press");
  for (const name of ["main", "h1"])
    if (document.querySelectorAll(name).length !== 1) found.push("not one " + name);
  if (!document.documentElement.lang) found.push("no language");
  return found;
}"""


@needs_browser
@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")]
)
def test_a_browser_shows_the_whole_page(
    browser: Browser, written: Path, width: int, scheme: str, tmp_path: Path
) -> None:
    page, troubles = opened(browser, written, width, scheme)
    assert troubles == []
    assert page.title() == "weir-lab capacity"  # what was embedded has not run
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    pictures = page.locator("figure svg")
    assert pictures.count() == PICTURES
    boxes = [pictures.nth(i).bounding_box() for i in range(PICTURES)]
    assert all(box and box["width"] >= 320 and box["height"] > 150 for box in boxes)
    embedded = json.loads(page.locator("#data").text_content() or "")
    assert embedded == [{"kind": "point", "text": HOSTILE}]
    ink = page.eval_on_selector("figure svg", "svg => getComputedStyle(svg).color")
    assert ink == ("rgb(228, 232, 235)" if scheme == "dark" else "rgb(22, 25, 29)")
    contrasts = page.evaluate(CONTRASTS)
    assert {"P", "LI", "TD", "TH", "FIGCAPTION", "BUTTON", "text", "--s0", "--s1"} <= set(contrasts)
    weak = {n: c for n, c in contrasts.items() if c < (3 if n.startswith("--") else 4.5)}
    assert weak == {}
    assert page.evaluate(COMPLAINTS) == []
    page.screenshot(
        path=os.environ.get("LAB_PICTURES", str(tmp_path)) + f"/{width}{scheme}.png", full_page=True
    )
    page.close()


def colours_of(png: bytes) -> set[tuple[int, ...]]:
    """The colours of areas, without the shades at their edges."""
    with Image.open(io.BytesIO(png)) as image:
        rgb = image.convert("RGB")
        counts = rgb.getcolors(rgb.width * rgb.height) or []
    return {colour for count, colour in counts if count > 20 and isinstance(colour, tuple)}


@needs_browser
@pytest.mark.parametrize("kind", ["none", "deuteranopia", "protanopia", "tritanopia"])
def test_every_picture_is_drawn_in_distinct_colours(
    browser: Browser, written: Path, kind: str
) -> None:
    page, _ = opened(browser, written, 1280, "light")
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setEmulatedVisionDeficiency", {"type": kind})
    for figure in page.locator("figure").all():
        named = figure.get_attribute("data-name")
        inks = [c for c in colours_of(figure.locator("svg").screenshot()) if min(c) < 200]
        assert len(inks) >= 2, named
        if named == "epoll-prediction":
            coloured = [c for c in inks if max(c) - min(c) > 40]
            far = max(
                sum(abs(x - y) for x, y in zip(a, b, strict=True))
                for a in coloured
                for b in coloured
            )
            assert far > 120, named
    page.close()


@needs_browser
def test_a_table_can_be_sorted_and_everything_saved(browser: Browser, written: Path) -> None:
    page, troubles = opened(browser, written, 1280, "light")
    table = page.locator("[data-file='epoll-levels.csv']")
    users = table.locator("thead button").first
    users.click()
    users.click()
    first = [int(t) for t in table.locator("tbody th").all_text_contents()]
    assert first == sorted(first, reverse=True)
    assert table.locator("[aria-sort=descending]").count() == 1
    beside = written.parent
    for kind in ("CSV", "SVG", "PNG"):
        with page.expect_download() as waiting:
            page.locator("figure[data-name='epoll-throughput'] button", has_text=kind).click()
        saved = waiting.value
        assert saved.suggested_filename == f"epoll-throughput.{kind.lower()}"
        content = Path(saved.path()).read_bytes()
        if kind == "CSV":
            assert content == (beside / saved.suggested_filename).read_bytes()
        elif kind == "SVG":
            assert b"var(" not in content
            assert b"currentColor" not in content
            ElementTree.fromstring(content)
        else:
            with Image.open(io.BytesIO(content)) as image:
                assert image.width > 1000
            assert len(colours_of(content)) > 3
    with page.expect_download() as waiting:
        page.locator("#whole button").click()
    assert json.loads(Path(waiting.value.path()).read_text()) == [
        {"kind": "point", "text": HOSTILE}
    ]
    assert [t for t in troubles if not t.startswith("asked for blob:")] == []
    page.close()


@needs_browser
def test_the_printed_page_is_dark_on_white(browser: Browser, written: Path, tmp_path: Path) -> None:
    page, _ = opened(browser, written, 1000, "dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    paper = tmp_path / "report.pdf"
    page.pdf(path=paper)
    assert paper.read_bytes().startswith(b"%PDF")
    assert not page.locator("figure button").first.is_visible()
    page.close()


def test_no_two_series_differ_by_colour_alone() -> None:
    chart = Chart(name="x", title="x", x="users", y="requests/s")
    for number in range(7):
        chart.line(str(number), [0, 1], [0, number], chart.style())
    svg = chart.finish("").svg
    dashes = set(re.findall(r"stroke-dasharray: ([0-9. ,]+)", svg)) | {"solid"}
    # Grid lines are solid; of the seven series one is solid and six have dashes of their own.
    assert len(dashes) == 7


def test_more_series_than_colours_still_differ() -> None:
    looks = {(each.colour, each.marker, str(each.dash)) for each in map(look, range(40))}
    assert len(looks) == 40


def test_histograms_are_added_and_no_percentile_is_averaged() -> None:
    parts = [HdrHistogram(1, 3_600_000_000_000, 3) for _ in range(2)]
    for _ in range(1000):
        parts[0].record_value(1_000_000)
    for _ in range(1000):
        parts[1].record_value(9_000_000)
    whole = distribution.merged([part.encode().decode() for part in parts] + [""])
    assert whole
    line = dict(distribution.spectrum(whole))
    assert line[1] == pytest.approx(1, rel=2e-3)
    assert max(line) == pytest.approx(200, rel=0.1)  # ten of two thousand are left beyond it
    assert line[10] == pytest.approx(9, rel=2e-3)


def test_a_picture_has_a_description_in_words() -> None:
    chart = Chart(name="x", title="Throughput", x="users", y="requests/s")
    chart.line("epoll", [1, 20], [900, 12_000], 0)
    chart.mark("N*", 9)
    alt = chart.finish("").alt
    assert alt == "Throughput: requests/s against users. epoll 900 at 1, 12,000 at 20; N* at 9."


@pytest.mark.parametrize("ends", [(1.0, 1.02), (0.9, 9.0), (0.05, 20.0), (0.001, 5000.0)])
def test_a_logarithmic_axis_has_a_readable_number_of_ticks(ends: tuple[float, float]) -> None:
    assert 2 <= len(PlainLog().tick_values(*ends)) <= TICKS_MAX


def test_sections_of_the_same_name_have_different_ids() -> None:
    twice = [pages.Section(title="Verdict"), pages.Section(title="Data!"), pages.Section(title="A")]
    assert [name for name, _ in pages.named([*twice, twice[2]])] == [
        "verdict-2",
        "data-2",
        "a",
        "a-2",
    ]


def test_a_picture_takes_its_ink_from_the_page() -> None:
    chart = Chart(name="x", title="x", x="users", y="requests/s")
    chart.line("a", [0, 1], [0, 1], 0)
    picture = chart.finish("")
    assert "currentColor" in picture.svg
    assert "#000000" not in picture.svg
    assert picture.svg.startswith("<svg")
    assert SERVER not in picture.csv
