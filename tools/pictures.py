#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes the pictures of the README from a real run: `weir top`, the statistics page and a
capacity plot.

A server serves the demo site to emulated users for a little more than a minute, so that the charts
of the last minute are full. tmux holds the terminal that `weir top` draws on, and Chromium takes
the screenshots. The plot is that of `weir-lab capacity`, which takes some minutes on a quiet
machine. Each picture is reduced to a palette: all of them together must stay below 300 KiB.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

TOP = Path(__file__).resolve().parent.parent
FOLDER = TOP / "docs/images"
WEIR = TOP / "build/weir"
LIMIT_BYTES = 300 * 1024
COLOURS = 64

COLUMNS, ROWS = 100, 32
LAST_MINUTE_S = 62
USERS = ["--users", "300", "--think", "exp:60ms", "--zipf", "1"]
PATHS = """\
/ 8
/style.css 8
/script.js 8
/images/weir.svg 6
/models.html 3
/journey.html 3
/files/ 2
/files/levels.csv 2
/weir.pdf 1
/no-such-page 1
"""
# A server that saturates long before the generator does, on two cores as well.
CAPACITY = ["capacity", "fork", "--close", "--think-ms", "120", "--users", "30..420:30"]
CAPACITY += ["--train-to", "210", "--repeats", "2", "--pilot", "10", "--no-halve"]


@dataclass(frozen=True)
class Server:
    pid: int
    url: str
    page_url: str


def address(lines: IO[str]) -> str:
    """The URL in the next line of what the server prints when it is ready."""
    found = re.search(r"http\S+", lines.readline())
    if not found:
        sys.exit("pictures: the server did not start")
    return found[0]


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """The demo site on free ports, with its statistics page."""
    words = [str(WEIR), "serve", "www", "--listen", "127.0.0.1:0", "--stats-listen", "127.0.0.1:0"]
    words += ["--access-log", str(folder / "access.log")]
    with subprocess.Popen(words, cwd=TOP, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            site, page = address(process.stderr), address(process.stderr)
            yield Server(process.pid, site, page)
        finally:
            process.terminate()


@contextlib.contextmanager
def under_load(server: Server, folder: Path) -> Iterator[None]:
    paths = folder / "paths"
    paths.write_text(PATHS)
    words = [str(WEIR), "load", server.url, *USERS, "--urls", str(paths), "--duration", "10m"]
    with (folder / "load.txt").open("w") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def screen_of_top(server: Server, folder: Path) -> str:
    """What `weir top` shows, with the escape sequences of its colours."""
    tmux = ["tmux", "-S", str(folder / "tmux")]
    size = ["-x", str(COLUMNS), "-y", str(ROWS)]
    variables = ["env", "LC_ALL=C.UTF-8", "TERM=screen-256color"]
    top = [str(WEIR), "top", str(server.pid)]
    subprocess.run([*tmux, "-f", "/dev/null", "new-session", "-d", *size, *variables, *top])
    try:
        time.sleep(LAST_MINUTE_S)
        words = [*tmux, "capture-pane", "-p", "-e"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def terminal_as_html(screen: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in screen.splitlines():
        console.print(Text.from_ansi(line), no_wrap=True, overflow="crop")
    form = (
        "<body style='margin:0'><pre style='display:inline-block;margin:0;padding:14px;"
        'font:14px/1.25 "DejaVu Sans Mono",monospace;'
        "color:{foreground};background:{background}'>{code}</pre></body>"
    )
    return str(console.export_html(theme=MONOKAI, inline_styles=True, code_format=form))


def save(png: bytes, name: str) -> None:
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS)
    FOLDER.mkdir(exist_ok=True)
    picture.save(FOLDER / name, optimize=True)


def picture_of_terminal(browser: Browser, screen: str) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_content(terminal_as_html(screen))
    save(page.locator("pre").screenshot(), "top.png")
    page.close()


def picture_of_page(browser: Browser, server: Server) -> None:
    page = browser.new_page(viewport={"width": 1100, "height": 860}, color_scheme="light")
    page.goto(server.page_url)
    page.locator("canvas").first.wait_for()
    page.wait_for_timeout(3000)  # the charts get one sample each second
    save(page.screenshot(), "page.png")
    page.close()


def picture_of_capacity(folder: Path) -> None:
    words = [str(TOP / ".venv-lab/bin/weir-lab"), *CAPACITY, "--out", str(folder), "--fresh"]
    subprocess.run(words, cwd=TOP, check=True)
    (plot,) = folder.rglob("*-throughput.png")
    picture = Image.open(plot).convert("RGB")
    picture.thumbnail((900, 900), Image.Resampling.LANCZOS)
    picture.quantize(COLOURS).save(FOLDER / "capacity.png", optimize=True)


def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    sys.exit("pictures: Chromium is not installed; scripts/bootstrap test installs it")


def main() -> int:
    parser = argparse.ArgumentParser(description="Take the pictures of the README.")
    parser.add_argument("--without-capacity", action="store_true", help="keep the plot as it is")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--disable-background-networking"],
        )
        with serving(folder) as server, under_load(server, folder):
            picture_of_terminal(browser, screen_of_top(server, folder))
            picture_of_page(browser, server)
        browser.close()
        if not options.without_capacity:
            picture_of_capacity(folder / "capacity")
    sizes = {path.name: path.stat().st_size for path in sorted(FOLDER.glob("*.png"))}
    for path, size in sizes.items():
        print(f"docs/images/{path}: {size / 1024:.0f} KiB")
    if sum(sizes.values()) > LIMIT_BYTES:
        sys.exit(f"pictures: together they exceed {LIMIT_BYTES // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
