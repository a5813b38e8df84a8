# SPDX-License-Identifier: MIT
"""The demo site and a directory listing in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urldefrag, urljoin

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.browsing import Watch, new_page
from tests.e2e.conftest import ServerFactory
from tests.e2e.running import TOP
from tests.e2e.wire import connect

WWW = TOP / "www"

pytestmark = pytest.mark.parametrize("model", ["percore"])


def links_of(page: Page) -> list[str]:
    """The addresses of all links of a page, absolute and without fragments."""
    found = page.eval_on_selector_all(
        "[href], [src]", "all => all.map(each => each.getAttribute('href') ?? each.src)"
    )
    return [urldefrag(urljoin(page.url, link))[0] for link in found]


def visit_all(page: Page, start: str) -> tuple[set[str], list[str]]:
    """Follows all links within the site; returns every address and the dead ones."""
    seen: set[str] = set()
    dead: list[str] = []
    waiting = [start]
    while waiting:
        url = waiting.pop()
        if url in seen or not url.startswith(start):
            continue
        seen.add(url)
        response = page.request.get(url)
        if response.status >= 400:
            dead.append(f"{response.status}: {url}")
        elif response.headers.get("content-type", "").startswith("text/html"):
            page.goto(url)
            waiting += links_of(page)
    return seen, dead


def test_the_demo_site_has_no_dead_links(server: ServerFactory, browser: Browser) -> None:
    running = server("--error-pages", str(WWW / "errors"), folder=WWW)
    page = new_page(browser)
    watch = Watch(page)
    seen, dead = visit_all(page, running.url + "/")
    page.close()
    assert dead == []
    assert watch.troubles == []
    assert len(seen) > 5


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_of_the_demo_site_is_wider_than_the_window(
    server: ServerFactory, browser: Browser, dark: bool, width: int
) -> None:
    running = server(folder=WWW)
    page = new_page(
        browser, viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light"
    )
    wide = []
    for path in sorted(WWW.glob("*.html")):
        page.goto(f"{running.url}/{path.name}")
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(path.name)
    page.close()
    assert wide == []


def test_a_listing_is_readable_sorted_and_has_working_links(
    server: ServerFactory, browser: Browser, tmp_path: Path
) -> None:
    folder = tmp_path / "listed"
    names = ["img2.txt", "img10.txt", "a b&<c>.txt", "100%.txt", "q?x#y.txt", "caf\u00e9.txt"]
    (folder / "zdir").mkdir(parents=True)
    for size, name in enumerate(names):
        (folder / name).write_text("x" * size)
    running = server("--listing", "on", folder=folder)
    page = new_page(browser)
    watch = Watch(page)
    page.goto(running.url + "/")
    text = page.inner_text("body")
    for name in [*names, "zdir"]:
        assert name in text
    assert text.index("zdir") < text.index("100%.txt")
    assert text.index("img2.txt") < text.index("img10.txt")
    for name in names:
        page.goto(running.url + "/")
        with page.expect_navigation():
            page.get_by_role("link", name=name, exact=True).click()
        assert page.inner_text("body") == (folder / name).read_text()
    _, dead = visit_all(page, running.url + "/")
    page.close()
    assert dead == []
    assert [trouble for trouble in watch.troubles if "favicon" not in trouble] == []


def many_names(folder: Path) -> list[str]:
    names = ["alpha.txt", "beta.png", "gamma.txt", "\u05d0\u202egnp.exe", "x" * 200]
    (folder / "zdir").mkdir(parents=True)
    for name in names:
        (folder / name).write_text("x")
    (folder / "README.md").write_text("# Title\n\n<script>alert(1)</script> " + "w" * 300 + "\n")
    return names


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_listing_fits_the_window_and_shows_the_readme(
    server: ServerFactory, browser: Browser, tmp_path: Path, dark: bool, width: int
) -> None:
    many_names(tmp_path / "listed")
    running = server("--listing", "on", folder=tmp_path / "listed")
    scheme: Literal["dark", "light"] = "dark" if dark else "light"
    page = new_page(browser, viewport={"width": width, "height": 800}, color_scheme=scheme)
    watch = Watch(page)
    page.goto(running.url + "/")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert "<script>alert(1)</script>" in page.inner_text("pre")
    assert page.get_by_role("heading", name="README.md").is_visible()
    page.close()
    assert [trouble for trouble in watch.troubles if "favicon" not in trouble] == []


def test_a_listing_can_be_filtered_and_used_with_keys(
    server: ServerFactory, browser: Browser, tmp_path: Path
) -> None:
    many_names(tmp_path / "listed")
    running = server("--listing", "on", folder=tmp_path / "listed")
    page = new_page(browser)
    page.goto(running.url + "/")

    def shown() -> list[str]:
        names: list[str] = page.eval_on_selector_all(
            "tbody tr:not([hidden]) a", "all => all.map(each => each.textContent)"
        )
        return names

    everything = shown()
    page.keyboard.press("/")
    page.keyboard.type("TXT")
    assert shown() == ["alpha.txt", "gamma.txt"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "gamma.txt"
    page.keyboard.press("Escape")
    assert shown() == everything
    page.keyboard.press("/")
    page.keyboard.type("beta")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith("/beta.png")
    page.close()


@pytest.mark.parametrize("of_path", [False, True])
def test_a_policy_of_the_site_leaves_the_script_of_listings_out(
    server: ServerFactory, browser: Browser, tmp_path: Path, of_path: bool
) -> None:
    many_names(tmp_path / "listed")
    policy = "content-security-policy: default-src 'none'; style-src 'unsafe-inline'"
    if of_path:
        conf = tmp_path / "weir.conf"
        site = (
            f"[site a]\nroot = {tmp_path / 'listed'}\nlisting = on\n[path /**]\nheader = {policy}\n"
        )
        conf.write_text(f"[server]\nlisten = 127.0.0.1:0\n{site}")
        running = server("-c", str(conf), folder=None, listen=())
    else:
        running = server("--listing", "on", "--header", policy, folder=tmp_path / "listed")
    page = new_page(browser)
    watch = Watch(page)
    page.goto(running.url + "/")
    assert "<script>\n" not in page.content()
    assert page.get_by_role("link", name="alpha.txt").is_visible()
    page.close()
    assert [trouble for trouble in watch.troubles if "favicon" not in trouble] == []


def test_an_error_page_shows_the_status(server: ServerFactory, browser: Browser) -> None:
    running = server()
    page = new_page(browser)
    response = page.goto(running.url + "/nothing-here")
    assert response
    assert response.status == 404
    assert "404" in page.title()
    assert page.inner_text("h1")
    page.close()


def test_the_stored_codings_of_the_demo_site_are_served(server: ServerFactory) -> None:
    running = server(folder=WWW)
    with connect(running.address) as connection:
        for path in WWW.rglob("*.gz"):
            plain = "/" + str(path.relative_to(WWW).with_suffix(""))
            coded = connection.get(plain, "a", "Accept-Encoding: gzip")
            assert coded.get("Content-Encoding") == "gzip", plain
            assert coded.body == path.read_bytes()
