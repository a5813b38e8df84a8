# SPDX-License-Identifier: MIT
"""The report as Chromium shows it: on three screens, in both themes, and on paper."""

import io
import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image
from playwright.sync_api import Browser

import measured
from browsing import LAPTOP, SCREENS, needs_browser, opened
from measured import HOSTILE, report_of
from weir_lab.report import page as pages

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
      found.push("a picture is not described: " + svg.closest(".scroll").dataset.name);
  }
  for (const svg of document.querySelectorAll(".span[role=img]"))
    if (!svg.getAttribute("aria-label")) found.push("an interval is not described");
  for (const part of document.querySelectorAll(".scroll"))
    if (part.tabIndex !== 0) found.push("a keyboard cannot reach " + part.ariaLabel);
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


UNFOLD = "document.querySelectorAll('details').forEach((fold) => fold.open = true)"


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_a_browser_shows_the_whole_page(
    browser: Browser, written: Path, screen: str, scheme: str, tmp_path: Path
) -> None:
    width, height = SCREENS[screen]
    page, troubles = opened(browser, written, width, scheme, height)
    assert troubles == []
    assert page.title() == "How much pool carries"  # what was embedded has not run
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    pictures = os.environ.get("LAB_PICTURES", str(tmp_path))
    page.screenshot(path=f"{pictures}/{screen}-{scheme}.png")
    page.evaluate(UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = [svg for svg in page.locator("figure svg").all() if svg.is_visible()]
    boxes = [svg.bounding_box() for svg in shown]
    assert all(box and box["width"] >= 320 and box["height"] > 150 for box in boxes)
    embedded = json.loads(page.locator("#data").text_content() or "")
    assert HOSTILE in [each.get("text") for each in embedded]
    ink = page.eval_on_selector("figure svg", "svg => getComputedStyle(svg).color")
    assert ink == ("rgb(228, 232, 235)" if scheme == "dark" else "rgb(22, 25, 29)")
    contrasts = page.evaluate(CONTRASTS)
    assert {"H2", "P", "LI", "TD", "TH", "FIGCAPTION", "BUTTON", "text", "--s0"} <= set(contrasts)
    weak = {n: c for n, c in contrasts.items() if c < (3 if n.startswith("--") else 4.5)}
    assert weak == {}
    assert page.evaluate(COMPLAINTS) == []
    page.screenshot(path=f"{pictures}/{screen}-{scheme}-whole.png", full_page=True)
    page.close()


@needs_browser
def test_the_first_screen_of_a_laptop_has_the_whole_answer(browser: Browser, written: Path) -> None:
    width, height = LAPTOP
    page, _ = opened(browser, written, width, "light", height)
    parts = {
        "sentence": page.locator("#answer"),
        "mark of trust": page.locator(".first .mark"),
        "reason": page.locator(".first .mark strong + *, .first .mark span:last-child").last,
        "throughput": page.locator("[data-name=capacity-throughput] svg.wide"),
        "response time": page.locator("[data-name=capacity-response] svg.wide"),
        **{f"number {n}": page.locator(".first .numbers > div").nth(n) for n in range(3)},
    }
    boxes = {name: part.bounding_box() for name, part in parts.items()}
    for name, box in boxes.items():
        assert box, name
        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= width, name
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= height, name
    picture, words = boxes["throughput"], boxes["sentence"]
    assert picture
    assert words
    assert picture["width"] > width / 2
    assert words["x"] + words["width"] <= picture["x"]  # beside, not above each other
    assert page.locator(".first .numbers > div").count() == 3
    assert not page.locator("details[open]").count()
    page.close()


@needs_browser
def test_a_hint_shows_the_value_under_the_pointer_and_by_the_keyboard(
    browser: Browser, written: Path
) -> None:
    page, _ = opened(browser, written, 1366, "light")
    part = page.locator("[data-name=capacity-throughput]")
    hint = page.locator("#hint")
    assert hint.text_content() == ""
    circle = part.locator("svg.wide .hints circle").nth(30)
    box = circle.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert re.search(r"measured, .*: \d+ users, [\d,]+ requests/s", hint.text_content() or "")
    assert part.locator(".ring").count() == 1
    page.mouse.move(2, 2)
    assert hint.text_content() == ""
    part.focus()
    page.keyboard.press("ArrowRight")
    first = hint.text_content()
    page.keyboard.press("ArrowRight")
    assert first
    assert hint.text_content() not in ("", first)
    page.close()


@needs_browser
def test_a_link_into_a_fold_opens_it(browser: Browser, written: Path) -> None:
    page, _ = opened(browser, written, 1366, "light")
    page.goto(f"{written.as_uri()}#table-capacity-levels")
    assert page.locator("#table-capacity-levels").is_visible()
    assert page.locator("details[open]").count() == 1
    page.locator("#all button").click()
    assert page.locator("details:not([open])").count() == 0
    page.locator("#all button").click()
    assert page.locator("details[open]").count() == 0
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
    page.evaluate(UNFOLD)
    for part in page.locator("figure .scroll").all():
        named = part.get_attribute("data-name")
        svg = next(each for each in part.locator("svg").all() if each.is_visible())
        inks = [c for c in colours_of(svg.screenshot()) if min(c) < 200]
        assert len(inks) >= 2, named
        if named == "capacity-prediction":
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
    page.evaluate(UNFOLD)
    table = page.locator("[data-file='capacity-levels.csv']")
    users = table.locator("thead button").first
    users.click()
    users.click()
    first = [int(t) for t in table.locator("tbody th").all_text_contents()]
    assert first == sorted(first, reverse=True)
    assert table.locator("[aria-sort=descending]").count() == 1
    beside = written.parent
    for kind in ("CSV", "SVG", "PNG"):
        with page.expect_download() as waiting:
            page.locator("figure[data-name='capacity-load'] button", has_text=kind).click()
        saved = waiting.value
        assert saved.suggested_filename == f"capacity-load.{kind.lower()}"
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
    saved_data = json.loads(Path(waiting.value.path()).read_text())
    assert HOSTILE in [each.get("text") for each in saved_data]
    assert [t for t in troubles if not t.startswith("asked for blob:")] == []
    page.close()


@needs_browser
def test_paper_shows_every_fold_in_black_on_white(
    browser: Browser, written: Path, tmp_path: Path
) -> None:
    page, _ = opened(browser, written, 1000, "dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate(UNFOLD)
    weak = {n: c for n, c in page.evaluate(CONTRASTS).items() if c < 3}
    assert weak == {}
    page.reload()
    paper = tmp_path / "report.pdf"
    page.pdf(path=paper)
    assert paper.read_bytes().startswith(b"%PDF")
    closed = tmp_path / "closed.pdf"
    page.add_style_tag(content="details > .fold { display: none }")
    page.pdf(path=closed)
    assert sheets(paper) > sheets(closed)  # the folds are on paper
    assert not page.locator("figure button").first.is_visible()
    assert not page.locator("#all button").is_visible()
    page.close()


@needs_browser
def test_grades_differ_without_colour(browser: Browser, written: Path) -> None:
    page, _ = opened(browser, written, 1366, "light")
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setEmulatedVisionDeficiency", {"type": "achromatopsia"})
    seen = set()
    for grade in pages.Grade:
        mark = pages.Mark(grade=grade, word="same", reason="")
        page.evaluate(
            "([grade, sign]) => { const mark = document.querySelector('.mark');"
            "mark.className = 'mark ' + grade; mark.querySelector('.sign').textContent = sign }",
            [grade.value, mark.sign],
        )
        seen.add(page.locator(".mark .sign").screenshot())
    assert len(seen) == len(pages.Grade)
    page.close()


def sheets(path: Path) -> int:
    """The pages of a PDF."""
    return len(re.findall(rb"/Type\s*/Page\b", path.read_bytes()))


@needs_browser
def test_void_points_are_drawn_but_answer_nothing(browser: Browser, tmp_path: Path) -> None:
    found = measured.lines("pool-ka")
    for each in found[1:]:
        each["load"]["failed"] = each["load"]["requests"]
    report = report_of(found, tmp_path)
    headline = report.sections[0].headline
    assert "None of the 56 measurements of pool is valid" in headline.sentence
    assert headline.mark
    assert headline.mark.grade is pages.Grade.RED
    assert "requests failed" in headline.mark.reason
    assert {row[0] for row in headline.pictures[0].rows} >= {"void"}
    page, troubles = opened(browser, pages.write(report, tmp_path), *LAPTOP[:1], "light")
    assert troubles == []
    page.evaluate(UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth") <= LAPTOP[0]
    page.close()
