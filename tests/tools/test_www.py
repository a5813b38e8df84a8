# SPDX-License-Identifier: MIT
"""The pages that come with weir: every tag that is opened is closed, in the right order."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGES = [
    path
    for folder in ("www", "packaging/debian/welcome", "src/page/www")
    for path in sorted((TOP / folder).rglob("*.html"))
]
NEVER_CLOSED = {"br", "col", "hr", "img", "input", "link", "meta", "source"}
MAY_STAY_OPEN = {"li", "p"}  # the end of their parent ends them


class Nesting(HTMLParser):
    """Collects the places where the tags of a page do not fit together."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag not in NEVER_CLOSED:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag and self.open[-1] in MAY_STAY_OPEN:
            self.open.pop()
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.wrong.append(f"line {self.getpos()[0]}: </{tag}> closes {self.open[-1:]}")


def test_a_tag_without_its_end_is_found() -> None:
    assert Nesting("<ul><li>a<li>b</ul><br><path d=''/>").wrong == []
    assert Nesting("<div><h1>a/h1></div>").wrong == [
        "line 1: </div> closes ['h1']",
        "<div> is not closed",
        "<h1> is not closed",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_the_tags_of_a_page_fit_together(page: Path) -> None:
    assert Nesting(page.read_text()).wrong == []
