# SPDX-License-Identifier: MIT
"""Early hints: links before the page, for browsers that open it over HTTP/2 (RFC 8297)."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, InformationalResponseReceived, ResponseReceived

from tests.e2e.browsing import new_page, trusting_chromium
from tests.e2e.certificates import Pair
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import Client, connect2
from tests.e2e.loading import errors, step_of
from tests.e2e.running import WEIR, Server
from tests.e2e.statistics import log_lines, settled
from tests.e2e.test_auth import ALICE
from tests.e2e.wire import TIMEOUT_S, connect
from tests.waiting import LIMIT_S

NAVIGATION = (b"sec-fetch-mode", b"navigate")
STYLE = "</style.css>; rel=preload; as=style"
FONTS = "<https://fonts.example>; rel=preconnect"
BOTH = f"{STYLE}, {FONTS}"
ONE_MODEL = pytest.mark.parametrize("model", ["percore"])


def configure(
    path: Path, site: Path, *, listen: str = "127.0.0.1:0", server: str = "", more: str = ""
) -> Path:
    """Two pages have links that are hints. A third one has another link."""
    h2c = "off" if listen.startswith("https") else "on"
    path.write_text(
        f"[server]\nlisten = {listen}\nh2c = {h2c}\n{server}\n"
        f"[site a]\nroot = {site}\nearly-hints = on\n{more}\n"
        f"[path /]\nheader = Link: {STYLE}, </next>; rel=next, {FONTS}\n"
        f"[path /big.html]\nheader = Link: {STYLE}\n"
        "[path /style.css]\ncache-control = max-age=3600\n"
        f"[path /other.html]\nheader = Link: </next>; rel=next\n"
    )
    return path


@pytest.fixture
def pages(site: Path) -> Path:
    (site / "style.css").write_text("body { background: #123456 }\n")
    (site / "index.html").write_text(
        '<!doctype html><title>page</title><link rel="stylesheet" href="style.css"><p>text\n'
    )
    (site / "other.html").write_text("<!doctype html><title>other</title>\n")
    (site / "big.html").write_bytes(b"<!doctype html>" + b"x" * 300_000)
    return site


def serve(server: ServerFactory, conf: Path) -> Server:
    return server("-c", str(conf), folder=None, listen=())


def hints(client: Client, path: str, *fields: tuple[bytes, bytes]) -> tuple[int, list[str]]:
    """The status of the answer, and the links that came before it."""
    stream = client.ask(path, NAVIGATION, *fields)
    status = client.answer(stream).status
    interim = client.streams[stream].interim
    assert [code for code, _ in interim] in ([], [103])
    assert {name for _, fields in interim for name, _ in fields} <= {"link"}
    return status, [value for _, fields in interim for _, value in fields]


def test_only_navigations_get_links_and_a_103_is_no_answer(
    server: ServerFactory, pages: Path, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    conf = configure(tmp_path / "weir.conf", pages, server=f"access-log = {log}")
    running = serve(server, conf)
    with connect2(running.address) as client:
        for _ in range(3):
            assert hints(client, "/") == (200, [BOTH])
            assert hints(client, "/big.html") == (200, [STYLE])
        assert hints(client, "/other.html") == (200, [])
        assert hints(client, "/nothing") == (404, [])
        etag = client.get("/").get("etag") or ""
        assert hints(client, "/", (b"if-none-match", etag.encode())) == (304, [])
        assert hints(client, "/big.html", (b"range", b"bytes=1-2")) == (206, [])
        stream = client.ask("/")
        assert client.answer(stream).get("link") == f"{STYLE}, </next>; rel=next, {FONTS}"
        assert client.streams[stream].interim == []
    with connect(running.address) as connection:
        assert connection.get("/", "a", "Sec-Fetch-Mode: navigate").status == 200
    requests = 6 + 1 + 1 + 1 + 1 + 1 + 1 + 1
    counters = settled(running)["counters"]
    assert counters["requests"] == requests
    assert counters["http2_early_hints"] == 6
    assert len(log_lines(log, requests)) == requests


def test_a_page_with_a_password_has_its_links_once_the_password_is_right(
    server: ServerFactory, pages: Path, tmp_path: Path
) -> None:
    users = tmp_path / "users"
    users.write_text(ALICE)
    users.chmod(0o640)
    running = serve(server, configure(tmp_path / "weir.conf", pages, more=f"auth = {users}"))
    right = (b"authorization", b"Basic " + base64.b64encode(b"alice:sesame"))
    with connect2(running.address) as client:
        assert hints(client, "/") == (401, [])
        assert hints(client, "/", right) == (200, [BOTH])
        assert hints(client, "/", right) == (200, [BOTH])


def test_a_load_counts_the_answers_alone(
    server: ServerFactory, pages: Path, tmp_path: Path
) -> None:
    running = serve(server, configure(tmp_path / "weir.conf", pages))
    words = ["--http2", "--users", "2", "--pipeline", "4", "--requests", "100", "--verify", "hash"]
    step = step_of(f"{running.url}/", "-H", "Sec-Fetch-Mode: navigate", *words)
    assert (step["answers"], step["status"], errors(step)) == (100, {"200": 100}, {})
    assert step["body_bytes"] == 100 * (pages / "index.html").stat().st_size
    counters = settled(running)["counters"]
    assert counters["requests"] == 100
    assert counters["http2_early_hints"] > 0


# ---- clients that others wrote ----


def ask_with_h2(address: tuple[str, int]) -> list[Event]:
    """The events of one navigation, by the Python package h2."""
    client = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
    client.initiate_connection()
    pseudo = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
    client.send_headers(1, [*pseudo, ("sec-fetch-mode", "navigate")], end_stream=True)
    events: list[Event] = []
    with socket.create_connection(address, TIMEOUT_S) as made:
        made.sendall(client.data_to_send())
        while not any(isinstance(event, DataReceived) for event in events):
            got = made.recv(65536)
            assert got
            events += client.receive_data(got)
    return events


def fields_of(event: InformationalResponseReceived | ResponseReceived) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in event.headers or []]


@ONE_MODEL
def test_h2_reads_an_informational_response(
    server: ServerFactory, pages: Path, tmp_path: Path
) -> None:
    running = serve(server, configure(tmp_path / "weir.conf", pages))
    events = ask_with_h2(running.address)
    of_answer = [
        event
        for event in events
        if isinstance(event, InformationalResponseReceived | ResponseReceived)
    ]
    early, final = of_answer
    assert isinstance(early, InformationalResponseReceived)
    assert fields_of(early) == [(":status", "103"), ("link", BOTH)]
    assert isinstance(final, ResponseReceived)
    assert (":status", "200") in fields_of(final)


@ONE_MODEL
@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl_shows_the_103_and_gets_the_page(
    server: ServerFactory, pages: Path, tmp_path: Path
) -> None:
    running = serve(server, configure(tmp_path / "weir.conf", pages))
    done = subprocess.run(
        ("curl", "-sSi", "--http2-prior-knowledge", "-H", "Sec-Fetch-Mode: navigate", running.url),
        capture_output=True,
        timeout=LIMIT_S,
        check=True,
    )
    early, final, body = done.stdout.split(b"\r\n\r\n", 2)
    assert early.decode().splitlines() == ["HTTP/2 103 ", f"link: {BOTH}"]
    assert final.startswith(b"HTTP/2 200 \r\n")
    assert body == (pages / "index.html").read_bytes()


@ONE_MODEL
def test_a_browser_accepts_an_early_hint(
    server: ServerFactory, pages: Path, pair: Pair, tmp_path: Path
) -> None:
    """Resource timing names the cause of each request. The page comes right behind its hint, so a
    busy browser may have read the page before the hint has given it the style."""
    conf = configure(
        tmp_path / "weir.conf", pages, listen="https://127.0.0.1:0", more=pair.settings()
    )
    running = serve(server, conf)
    url = running.urls[0].rstrip("/").replace("127.0.0.1", "localhost")
    with trusting_chromium(pair) as browser:
        page = new_page(browser)
        page.goto(f"{url}/", wait_until="load")
        causes = page.evaluate(
            "performance.getEntriesByType('resource')"
            ".filter(each => each.name.endsWith('style.css'))"
            ".map(each => [each.initiatorType, each.nextHopProtocol])"
        )
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert causes in ([["early-hints", "h2"]], [["link", "h2"]])
    assert colour == "rgb(18, 52, 86)"
    assert settled(running)["counters"]["http2_early_hints"] == 1


# ---- weir check and weir trace ----


def run(*words: str) -> str:
    done = subprocess.run(
        [WEIR, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_check_warns_of_hints_that_no_client_gets(pages: Path, tmp_path: Path) -> None:
    conf = configure(tmp_path / "weir.conf", pages)
    assert "early-hints" not in run("check", "-c", str(conf))
    conf.write_text(conf.read_text().replace("h2c = on", "h2c = off"))
    warning = "warning: early-hints: this has no effect: no address of `listen` speaks HTTP/2"
    assert f"{conf}:7: {warning}" in run("check", "-c", str(conf))


def test_trace_says_whether_links_go_before_the_answer(pages: Path, tmp_path: Path) -> None:
    conf = str(configure(tmp_path / "weir.conf", pages))
    words = ("-c", conf, "--http-version", "2", "-H", "Sec-Fetch-Mode: navigate")
    shown = run("trace", "/", *words)
    assert "early hints a 103 with 2 links goes before the answer" in shown
    assert "\nanswer      200" in shown
    assert "no Link of the answer has rel=preload" in run("trace", "/other.html", *words)
    none = "early hints none: only a 200 to GET over HTTP/2 with Sec-Fetch-Mode: navigate"
    assert none in run("trace", "/", "-c", conf)
    assert none in run("trace", "/", *words, "--method", "HEAD")
