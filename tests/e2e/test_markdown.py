# SPDX-License-Identifier: MIT
"""Pages in Markdown for clients that prefer them: every model, over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.test_compression import client, over
from tests.e2e.test_rules import configured, write
from tests.e2e.wire import Answer
from tests.waiting import wait_until

AGENT = "Accept: text/markdown, text/html;q=0.9, */*;q=0.1"
BROWSER = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
HTML, MARKDOWN = "text/html; charset=utf-8", "text/markdown; charset=utf-8"

PAGE, TEXT = b"<!doctype html><title>page</title>\n", b"# page\n\n0123456789\n"


@pytest.fixture
def pages(site: Path) -> Path:
    """A site with a page and a folder in both forms."""
    (site / "docs").mkdir()
    for name in ("page", "docs/index"):
        (site / f"{name}.html").write_bytes(PAGE)
        (site / f"{name}.md").write_bytes(TEXT)
    return site


def on(server: ServerFactory, pages: Path) -> Server:
    return server("--markdown", "on", "--h2c", "on", folder=pages)


def is_markdown(answer: Answer) -> bool:
    kind = answer.get("Content-Type")
    assert kind in (HTML, MARKDOWN)
    return kind == MARKDOWN


@over
def test_a_client_that_prefers_markdown_gets_it(
    server: ServerFactory, pages: Path, protocol: str
) -> None:
    with client(protocol, on(server, pages)) as get:
        for path, location in (("/page.html", "/page.md"), ("/docs/", "/docs/index.md")):
            for _ in range(3):
                page, text = get(path, BROWSER), get(path, AGENT)
                assert (page.status, page.body) == (200, PAGE)
                assert (text.status, text.body) == (200, TEXT)
                assert not is_markdown(page)
                assert is_markdown(text)
                # The cache may make variants of a page of this type, when it is longer.
                assert (page.get("Vary") or "").split(", ")[0] == "Accept"
                assert page.get("Vary") == text.get("Vary")
                assert page.get("Content-Location") is None
                assert text.get("Content-Location") == location
                assert text.get("ETag") != page.get("ETag")
        own = get("/page.md", BROWSER)
        assert own.body == TEXT
        assert own.get("Vary") in (None, "Accept-Encoding")
        assert own.get("Content-Location") is None


@over
def test_a_client_gets_html_unless_it_prefers_markdown(
    server: ServerFactory, pages: Path, protocol: str
) -> None:
    (pages / "alone.html").write_bytes(PAGE)
    fields = [
        (),
        (BROWSER,),
        ("Accept: */*",),
        ("Accept: text/html, text/markdown",),
        ("Accept: text/markdown;q=0.5, text/html;q=0.6",),
        ("Accept: text/markdown;q=0",),
        ("Accept: image/png",),
    ]
    with client(protocol, on(server, pages)) as get:
        for each in fields:
            answer = get("/page.html", *each)
            assert (answer.status, answer.body) == (200, PAGE), each
        assert is_markdown(get("/page.html", "Accept: text/markdown, text/html, */*"))
        alone = get("/alone.html", AGENT)
        assert (alone.status, alone.body) == (200, PAGE)
        assert "Accept" not in (alone.get("Vary") or "").split(", ")


@over
def test_off_is_the_default(server: ServerFactory, pages: Path, protocol: str) -> None:
    with client(protocol, server("--h2c", "on", folder=pages)) as get:
        answer = get("/page.html", AGENT)
        assert answer.body == PAGE
        assert "Accept" not in (answer.get("Vary") or "").split(", ")


@over
def test_ranges_conditions_and_head_apply_to_the_form_that_is_sent(
    server: ServerFactory, pages: Path, protocol: str
) -> None:
    with client(protocol, on(server, pages)) as get:
        for _ in range(2):
            text, page = get("/page.html", AGENT), get("/page.html")
            tag, other = text.get("ETag"), page.get("ETag")
            part = get("/page.html", AGENT, "Range: bytes=2-5")
            assert (part.status, part.body) == (206, b"page")
            assert part.get("Content-Location") == "/page.md"
            assert (part.get("Vary") or "").startswith("Accept")
            assert get("/page.html", AGENT, "Range: bytes=900-").status == 416
            known = get("/page.html", AGENT, f"If-None-Match: {tag}")
            assert (known.status, known.get("ETag")) == (304, tag)
            assert known.get("Content-Location") == "/page.md"
            assert known.get("Vary") == text.get("Vary")
            assert get("/page.html", AGENT, f"If-None-Match: {other}").status == 200
            assert get("/page.html", AGENT, f"If-Match: {other}").status == 412
            assert get("/page.html", BROWSER, f"If-None-Match: {tag}").status == 200
            ranged = ("Range: bytes=0-0", f"If-Range: {other}")
            assert get("/page.html", AGENT, *ranged).status == 200
            head = get("/page.html", AGENT, head=True)
            assert head.body == b""
            assert head.get("Content-Length") == str(len(TEXT))
            assert is_markdown(head)


@pytest.mark.parametrize("model", ["fork", "epoll", "uring"])
@over
def test_a_change_of_either_form_is_noticed(
    server: ServerFactory, pages: Path, protocol: str
) -> None:
    running = on(server, pages)

    def gets(path: str, body: bytes) -> bool:
        with client(protocol, running) as get:
            return get(path, AGENT).body == body

    assert gets("/page.html", TEXT)
    (pages / "page.md").write_bytes(b"# other\n")
    wait_until(lambda: gets("/page.html", b"# other\n"), "the new text")
    (pages / "page.md").unlink()
    wait_until(lambda: gets("/page.html", PAGE), "the page, when it is alone")
    (pages / "page.md").write_bytes(TEXT)
    wait_until(lambda: gets("/page.html", TEXT), "the text again")
    (pages / "page.html").unlink()
    wait_until(lambda: gone(protocol, running), "no page")


def gone(protocol: str, running: Server) -> bool:
    with client(protocol, running) as get:
        return get("/page.html", AGENT).status == 404


@pytest.mark.parametrize("model", ["epoll", "percore"])
@over
def test_the_text_is_compressed_once(server: ServerFactory, pages: Path, protocol: str) -> None:
    text = b"# a long page\n" * 1000
    (pages / "page.md").write_bytes(text)
    with client(protocol, on(server, pages)) as get:

        def get_text(path: str, *fields: str) -> Answer:
            answer = get(path, AGENT, *fields)
            assert is_markdown(answer)
            assert answer.get("Vary") == "Accept, Accept-Encoding"
            return answer

        wait_until(
            lambda: get_text("/page.html", "Accept-Encoding: gzip").get("Content-Encoding"),
            "the text in gzip",
        )
        assert get_text("/page.html").body == text


RULES = """\
markdown = on

[path /**/*.html]
header = X-Rule: page

[path /**/*.md]
header = X-Rule: text

[path /closed.md]
deny = all

[path /moved.md]
redirect = 301 /elsewhere

[path /same.*]
allow = 127.0.0.0/8

[path /short]
rewrite = /page.html

[path /html/**]
markdown = off
"""


@over
def test_rules_of_the_requested_path_apply_and_those_of_the_text_restrict(
    server: ServerFactory, tmp_path: Path, pages: Path, protocol: str
) -> None:
    (pages / "html").mkdir()
    for name in ("closed", "moved", "same", "html/page"):
        (pages / f"{name}.html").write_bytes(PAGE)
        (pages / f"{name}.md").write_bytes(TEXT)
    running = configured(server, write(tmp_path / "weir.conf", pages, RULES))
    with client(protocol, running) as get:
        for _ in range(3):
            for path in ("/page.html", "/same.html"):
                for fields in ((AGENT,), (BROWSER,)):
                    answer = get(path, *fields)
                    assert answer.body == (TEXT if fields == (AGENT,) else PAGE)
                    assert answer.get("X-Rule") == "page"
                    assert (answer.get("Vary") or "").startswith("Accept")
            assert get("/page.md", AGENT).get("X-Rule") == "text"
            assert get("/short", AGENT).body == TEXT
            assert get("/short", AGENT).get("X-Rule") is None
            assert get("/closed.md").status == 403
            assert get("/moved.md").status == 301
            for path in ("/closed.html", "/moved.html", "/html/page.html"):
                answer = get(path, AGENT)
                assert (answer.status, answer.body) == (200, PAGE), path
            assert "Accept" not in (answer.get("Vary") or "").split(", ")


@over
def test_a_text_outside_of_the_root_or_without_permission_is_not_sent(
    server: ServerFactory, tmp_path: Path, pages: Path, protocol: str
) -> None:
    (tmp_path / "secret.md").write_bytes(b"secret\n")
    for name in ("link", "folder"):
        (pages / f"{name}.html").write_bytes(PAGE)
    (pages / "link.md").symlink_to("../secret.md")
    (pages / "folder.md").mkdir()
    with client(protocol, on(server, pages)) as get:
        for path in ("/link.html", "/folder.html"):
            answer = get(path, AGENT)
            assert (answer.status, answer.body) == (200, PAGE), path


@over
def test_one_path_can_turn_markdown_on(
    server: ServerFactory, tmp_path: Path, pages: Path, protocol: str
) -> None:
    rules = "[path /docs/**]\nmarkdown = on"
    running = configured(server, write(tmp_path / "weir.conf", pages, rules))
    with client(protocol, running) as get:
        for _ in range(2):
            assert get("/docs/", AGENT).body == TEXT
            assert get("/page.html", AGENT).body == PAGE
