# SPDX-License-Identifier: MIT
"""Statistics of HTTP/2: requests by protocol, streams, resets, and the causes for which connections
ended. The page and the settings are here, too.
"""

from __future__ import annotations

import re
import socket
import ssl
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.certificates import make
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import Code, Setting, StreamResetError, connect2, ping, request, reset
from tests.e2e.http2 import headers as headers_frame
from tests.e2e.statistics import log_lines, read, settled, wait_for, weir_stats
from tests.e2e.test_page_browser import opened, page_of, text
from tests.e2e.wire import TIMEOUT_S, connect
from tests.waiting import wait_until

H2C = ("--h2c", "on")
GET = request()


def test_requests_count_by_protocol(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = server(*H2C, "--access-log", str(log))
    with connect(running.address) as connection:
        for _ in range(3):
            assert connection.get("/hello.txt").status == 200
        connection.send(b"GET /hello.txt HTTP/1.0\r\n\r\n")
        assert connection.read().status == 200
    with connect(running.address) as connection:
        connection.send(b"nonsense\r\n\r\n")
        assert connection.read().status == 400
    with connect2(running.address) as client:
        streams = [client.ask(path) for path in ("/hello.txt", "/nothing", "/index.html") * 4]
        assert [client.answer(stream).status for stream in streams[:3]] == [200, 404, 200]
        for stream in streams[3:]:
            client.answer(stream)
    numbers = settled(running)
    counters = numbers["counters"]
    assert counters["requests_http_1_0"] == 1
    assert counters["requests_http_1_1"] == 3 + 1
    assert counters["requests_http_2"] == 12
    assert counters["requests"] == 1 + 3 + 1 + 12
    assert len(log_lines(log, 17)) == 17
    lines = log.read_text().splitlines()
    assert sum(' HTTP/2.0"' in line for line in lines) == 12
    assert counters["http2_connections_begun"] == counters["http2_connections_ended"] == 1
    assert counters["http2_streams_opened"] == counters["http2_streams_closed"] == 12
    assert numbers["gauges"]["http2_streams_open"] == 0


def test_open_streams_and_connections_are_gauges(server: ServerFactory, site: Path) -> None:
    (site / "big.bin").write_bytes(bytes(500_000))
    running = server(*H2C)
    with connect2(running.address, refund=False) as client:
        client.ask("/big.bin")
        numbers = wait_for(running, lambda now: now["counters"]["http2_stalls"] == 1)
        assert numbers["gauges"]["http2_connections_open"] == 1
        assert numbers["gauges"]["http2_streams_open"] == 1
        client.send(reset(1))
        wait_for(running, lambda now: now["gauges"]["http2_streams_open"] == 0)
    counters = settled(running)["counters"]
    assert counters["http2_resets_received"] == 1
    assert counters["http2_resets_sent"] == 0
    assert counters["answers_cut"] == 1


@pytest.mark.parametrize("model", ["epoll"])
def test_each_end_counts_its_cause(server: ServerFactory) -> None:
    running = server(*H2C, "--http2-streams", "2")
    with connect2(running.address) as client:
        client.settle()
        assert client.settings[Setting.MAX_CONCURRENT_STREAMS] == 2
        whole = [headers_frame(s, request(b"/", method=b"POST"), end=False) for s in (1, 3, 5)]
        client.send(*whole)
        with pytest.raises(StreamResetError, match="REFUSED_STREAM"):
            client.answer(5)
        malformed = headers_frame(7, request(b"/", (b"Upper", b"case")))
        client.send(reset(1), malformed)
        with pytest.raises(StreamResetError):
            client.answer(7)
    with connect2(running.address) as client:
        client.send(headers_frame(2, GET))
        assert client.end() == Code.PROTOCOL_ERROR
    with connect2(running.address) as client:
        client.send(ping() * 10_000)
        assert client.end() == Code.ENHANCE_YOUR_CALM
    numbers = settled(running)
    causes = {cause: count for cause, count in numbers["http2_ended_by_cause"].items() if count}
    assert causes == {"refused": 1, "malformed": 1, "stream_order": 1, "control": 1}
    counters = numbers["counters"]
    assert counters["http2_streams_refused"] == 1
    assert counters["http2_resets_sent"] == 2
    assert (counters["http2_violations"], counters["http2_floods"]) == (1, 1)
    assert counters["http2_goaways_sent"] == 2

    pid = str(running.master.pid)
    families = text_string_to_metric_families(weir_stats("--prometheus", pid).stdout)
    samples = next(family.samples for family in families if family.name == "weir_http2_ended")
    printed = {sample.labels["cause"]: sample.value for sample in samples}
    assert printed == numbers["http2_ended_by_cause"]
    human = weir_stats("--explain", pid).stdout
    assert re.search(r"^  control +1\n +more frames without progress", human, re.MULTILINE)
    rules = {verdict["rule"]: verdict for verdict in numbers["verdicts"]}
    assert "`control`" in rules["http2-floods"]["why"]
    assert "http2-streams" in rules["http2-streams-refused"]["cure"]


@pytest.mark.parametrize("model", ["percore"])
def test_the_page_has_a_section_once_a_client_has_spoken_it(
    server: ServerFactory, browser: Browser
) -> None:
    running = server(*H2C, "--stats-listen", "127.0.0.1:0")
    with opened(browser, page_of(running)) as (page, _):
        assert page.is_hidden("#http2")
        with connect2(running.address) as client:
            assert client.get().status == 200
            page.wait_for_selector("#http2", state="visible")
            # The connection counts before its request does.
            wait_until(
                lambda: text(page, "http2-requests").startswith("1, 100 % of all"),
                "the page shows the request",
            )
            assert text(page, "http2-connections") == "1"


@pytest.mark.parametrize("model", ["percore"])
def test_a_plain_address_speaks_http_2_only_when_told(server: ServerFactory) -> None:
    running = server()
    with connect(running.address) as connection:
        connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert connection.read().status == 505
    assert read(running.master.pid)["counters"]["http2_connections_begun"] == 0


@pytest.mark.parametrize("model", ["percore"])
@pytest.mark.parametrize(
    ("options", "offered", "agreed"),
    [
        ((), ["h2", "http/1.1"], "h2"),
        ((), ["http/1.1", "h2"], "h2"),
        ((), ["http/1.1"], "http/1.1"),
        ((), [], None),
        (("--http2", "off"), ["h2", "http/1.1"], "http/1.1"),
        (("--http2", "off"), ["h2"], ssl.SSLError),
        ((), ["h3"], ssl.SSLError),
    ],
)
def test_alpn_chooses_among_the_protocols_that_are_on(
    server: ServerFactory,
    tmp_path: Path,
    options: tuple[str, ...],
    offered: list[str],
    agreed: str | type[Exception] | None,
) -> None:
    pair = make(tmp_path, "own", "localhost", "IP:127.0.0.1")
    running = server(*pair.flags(), *options, listen=("https://127.0.0.1:0",))
    context = ssl.create_default_context(cafile=str(pair.certificate))
    if offered:
        context.set_alpn_protocols(offered)
    with socket.create_connection(running.address, timeout=TIMEOUT_S) as plain:
        if isinstance(agreed, type):
            with pytest.raises(agreed, match=r"(?i)no.application.protocol"):
                context.wrap_socket(plain, server_hostname="localhost")
            return
        with context.wrap_socket(plain, server_hostname="localhost") as tls:
            assert tls.selected_alpn_protocol() == agreed
