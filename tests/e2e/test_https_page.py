# SPDX-License-Identifier: MIT
"""The statistics page over TLS: what it serves, its certificates, and clients that misbehave."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from tests.e2e.browsing import Watch, new_page
from tests.e2e.certificates import VERSIONS, Pair, make, secure, trusting
from tests.e2e.conftest import Port, ServerFactory
from tests.e2e.running import STATISTICS, TOP, Server
from tests.e2e.statistics import wait_for
from tests.e2e.test_https_settings import CHEAP_HASH, has_in_memory, listeners, run, secret_of
from tests.e2e.wire import Connection, connect, parse_answer
from tests.waiting import LIMIT_S, wait_until

ON = ("--stats-listen", "https://127.0.0.1:0")
PASSWORD = "correct horse: battery staple"  # CHEAP_HASH is its hash
MISSING = "/nothing"

pytestmark = pytest.mark.parametrize("model", ["epoll"])  # the page is the same in every model


@pytest.fixture
def running(server: ServerFactory, pair: Pair) -> Server:
    return server(*pair.flags(), *ON)


def page_of(running: Server) -> tuple[str, int]:
    """The address of the page. The server has printed it with its scheme."""
    found = re.findall(r"^statistics: (https://127\.0\.0\.1:\d+)/$", running.messages(), re.M)
    assert found, running.messages()
    return "127.0.0.1", urlsplit(found[-1]).port or 0


def request(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *fields, "", ""]).encode()


def served(running: Server) -> bytes:
    """The certificate that a new connection to the page gets."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(page_of(running)))


def page_process(running: Server) -> int | None:
    found = [child.pid for child in running.master.children() if child.comm == STATISTICS]
    return found[0] if len(found) == 1 else None


# ---- what it serves ----


@pytest.mark.parametrize("version", VERSIONS)
def test_every_path_is_served(running: Server, pair: Pair, version: ssl.TLSVersion) -> None:
    page = TOP / "src/page/www/index.html"
    with secure(page_of(running), trusting(pair, version)) as connection:
        assert connection.get("/", "localhost").body == page.read_bytes()
        assert connection.get("/healthz", "localhost").body == b"serving\n"
        assert json.loads(connection.get("/stats.json", "localhost").body)["running"] is True
        assert b"\nweir_up 1\n" in connection.get("/metrics", "localhost").body
        assert connection.get(MISSING, "localhost").status == 404
        chart = connection.get("/chart.js", "localhost").body
        assert chart == Path("/usr/share/javascript/chart.js/chart.min.js").read_bytes()
    assert "the sandbox refused" not in running.messages()
    wait_for(running, lambda now: now["counters"]["calls_refused"] == 0)


def test_the_only_protocol_is_http_1_1(running: Server, pair: Pair) -> None:
    context = trusting(pair)
    context.set_alpn_protocols(["h2", "http/1.1"])
    with secure(page_of(running), context) as connection:
        assert isinstance(connection.socket, ssl.SSLSocket)
        assert connection.socket.selected_alpn_protocol() == "http/1.1"
        assert connection.get("/healthz", "localhost").status == 200


@pytest.mark.parametrize("version", VERSIONS)
def test_events_arrive_each_second(running: Server, pair: Pair, version: ssl.TLSVersion) -> None:
    with secure(page_of(running), trusting(pair, version)) as connection:
        connection.send(request("/events"))
        got = b""
        while got.count(b"\nevent: ") < 4:
            more = connection.socket.recv(65536)
            assert more
            got += more
    assert re.findall(rb"\nevent: (\w+)\n", got)[:4] == [b"stats", b"second", b"second", b"second"]


def test_a_stop_ends_streams_with_close_notify(server: ServerFactory, pair: Pair) -> None:
    running = server(*pair.flags(), *ON)
    with secure(page_of(running), trusting(pair)) as connection:
        connection.send(request("/events"))
        assert connection.socket.recv(1) == b"H"
        running.signal(signal.SIGTERM)
        connection.read_to_end()  # which fails if the end is not a close_notify


def test_the_last_answer_is_followed_by_close_notify(running: Server, pair: Pair) -> None:
    with secure(page_of(running), trusting(pair)) as connection:
        connection.send(request("/healthz", "Connection: close"))
        assert connection.read_to_end().endswith(b"serving\n")


def test_a_password_is_asked_for(server: ServerFactory, pair: Pair) -> None:
    running = server(*pair.flags(), *ON, "--stats-password", CHEAP_HASH)
    right = base64.b64encode(f"x:{PASSWORD}".encode()).decode()
    with secure(page_of(running), trusting(pair)) as connection:
        assert connection.get("/stats.json", "localhost").status == 401
        with_password = connection.get("/stats.json", "localhost", f"Authorization: Basic {right}")
        assert with_password.status == 200
        assert connection.get("/healthz", "localhost").status == 200


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_requests_in_pieces_and_in_one_piece_are_answered(
    running: Server, pair: Pair, size: int
) -> None:
    """Each piece is a record. The largest one has more requests than the page keeps at a time."""
    data = request("/healthz") * 200
    with secure(page_of(running), trusting(pair)) as connection:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), size):
            connection.send(data[at : at + size])
        assert [connection.read().body for _ in range(200)] == [b"serving\n"] * 200


def test_a_slow_reader_gets_everything_while_others_are_served(running: Server, pair: Pair) -> None:
    page, context = page_of(running), trusting(pair)
    whole = Path("/usr/share/javascript/chart.js/chart.min.js").read_bytes()
    with (
        secure(page, context, receive_buffer=1024) as slow,
        secure(page, context) as other,
    ):
        slow.send(request("/chart.js") * 8 + request("/healthz", "Connection: close"))
        got = b""
        while more := slow.socket.recv(4096):
            got += more
            if len(got) % 64 == 0:
                assert other.get("/healthz", "localhost").status == 200
    for _ in range(8):
        parsed = parse_answer(got)
        assert parsed
        assert parsed[0].body == whole
        got = parsed[1]
    assert got.endswith(b"serving\n")


# ---- certificates ----


def test_a_changed_certificate_is_used(server: ServerFactory, tmp_path: Path, pair: Pair) -> None:
    later = make(tmp_path, "later", "localhost")
    new = ssl.PEM_cert_to_DER_cert(later.certificate.read_text())
    running = server(*pair.flags(), *ON)
    assert served(running) != new
    whole = pair.key.read_bytes()
    pair.key.write_bytes(whole[:50])
    stale = wait_for(running, lambda now: now["gauges"]["certificates_stale"] == 1)
    assert stale["counters"]["certificates_refused"] == 1
    pair.replace_with(later)
    wait_until(lambda: served(running) == new, "the new certificate")
    wait_for(running, lambda now: now["gauges"]["certificates_stale"] == 0)


def test_the_page_has_the_certificate_of_the_site_that_the_client_names(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    one, two = (make(tmp_path, name, f"{name}.example") for name in ("one", "two"))
    conf = tmp_path / "weir.conf"
    conf.write_text(
        "[server]\nlisten = 127.0.0.1:0\nstats-listen = https://127.0.0.1:0\n"
        f"[site one]\nroot = {site}\nhost = one.example\n{one.settings()}"
        f"[site two]\nroot = {site}\nhost = two.example\n{two.settings()}"
    )
    running = server("-c", str(conf), folder=None, listen=(), environment={"WEIR_STATS_LISTEN": ""})
    for pair, name in ((one, "one.example"), (two, "two.example")):
        with (
            socket.create_connection(page_of(running), LIMIT_S) as plain,
            trusting(pair).wrap_socket(plain, server_hostname=name) as wrapped,
        ):
            assert Connection(wrapped).get("/healthz", name).status == 421  # it has no password


def test_localhost_needs_no_certificate(server: ServerFactory, tmp_path: Path) -> None:
    state = tmp_path / "state"
    running = server(
        *("--stats-listen", "https://localhost:0"),
        environment={"HOME": str(tmp_path), "XDG_STATE_HOME": str(state)},
    )
    line = re.search(r"self-signed certificate: (\S+), SHA-256", running.messages())
    assert line
    own = ssl.create_default_context(cafile=line[1])
    with secure(page_of(running), own) as connection:
        assert connection.get("/healthz", "localhost").status == 200


def test_a_reload_changes_the_scheme_and_keeps_the_address(
    server: ServerFactory, tmp_path: Path, site: Path, pair: Pair, port: Port
) -> None:
    conf, free = tmp_path / "weir.conf", port()
    body = f"[site a]\nroot = {site}\n{pair.settings()}"
    conf.write_text(f"[server]\nlisten = 127.0.0.1:0\nstats-listen = 127.0.0.1:{free}\n{body}")
    running = server("-c", str(conf), folder=None, listen=(), environment={"WEIR_STATS_LISTEN": ""})
    listening = listeners(free)
    conf.write_text(
        f"[server]\nlisten = 127.0.0.1:0\nstats-listen = https://127.0.0.1:{free}\n{body}"
    )
    assert run("reload", str(running.popen.pid)).returncode == 0
    assert listeners(free) == listening

    def speaks_tls() -> bool:
        try:
            with secure(("127.0.0.1", free), trusting(pair)) as connection:
                return connection.get("/healthz", "localhost").status == 200
        except (ssl.SSLError, ConnectionError):
            return False

    wait_until(speaks_tls, "the page with TLS")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads the memory of other processes")
def test_the_page_has_the_key_and_a_worker_without_tls_has_not(running: Server, pair: Pair) -> None:
    secret = secret_of(pair)
    page = wait_until(lambda: page_process(running), running.messages)
    assert page
    assert has_in_memory(page, secret)
    assert running.workers()
    assert not any(has_in_memory(worker.pid, secret) for worker in running.workers())


# ---- clients that misbehave ----


def test_plain_http_is_told_to_use_https(running: Server) -> None:
    with connect(page_of(running)) as connection:
        answer = connection.get("/", "localhost")
        assert answer.status == 400
        assert b"https://" in answer.body
        assert answer.closes
        assert connection.read_to_end() == b""


BROKEN = {
    "bytes that are no TLS": b"\x16\x03\x01\x00\x05hello",
    "a handshake that ends": b"\x16\x03\x01\x02\x00\x01\x00",
    "no byte": b"",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_failed_handshake_disturbs_no_other_client(
    running: Server, pair: Pair, kind: str
) -> None:
    page = page_of(running)
    with secure(page, trusting(pair)) as other:
        with connect(page) as connection:
            connection.send(BROKEN[kind])
            if kind == "bytes that are no TLS":
                assert connection.read_to_end()[:1] == b"\x15"  # an alert
        assert other.get("/healthz", "localhost").status == 200


def test_a_broken_record_ends_the_connection_with_an_alert(running: Server, pair: Pair) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(pair).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with connect(page_of(running)) as connection:
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.send(outgoing.read())
                incoming.write(connection.socket.recv(65536))
        client.write(request("/stats.json"))
        record = bytearray(outgoing.read())
        record[-1] ^= 1
        connection.send(bytes(record) + bytes(20_000))  # and more, which is not read as TLS
        incoming.write(connection.read_to_end())
        incoming.write_eof()
        with pytest.raises(ssl.SSLError, match="BAD_RECORD_MAC"):
            client.read(1000)


def test_a_page_that_is_full_of_silent_clients_still_answers(running: Server, pair: Pair) -> None:
    page = page_of(running)
    silent = [Connection.to(page) for _ in range(70)]  # more than PAGE_CONNECTIONS
    with secure(page, trusting(pair)) as connection:
        assert connection.get("/healthz", "localhost").status == 200
    for each in silent:
        each.close()


# ---- other readers ----


def test_the_commands_read_the_statistics_as_before(running: Server) -> None:
    shown = run("stats", str(running.popen.pid))
    assert shown.returncode == 0
    assert "serving" in shown.stdout


def test_a_browser_shows_the_page(running: Server, browser: Browser) -> None:
    page = new_page(browser, ignore_https_errors=True)
    watch = Watch(page)
    page.goto("https://{}:{}/".format(*page_of(running)))
    wait_until(lambda: page.evaluate("weir.stats !== null"), "the page has numbers")
    shown = page.inner_text("#certificates tbody").split()
    assert shown[:2] == ["localhost", "ECDSA"]
    assert 89 < float(shown[3]) <= 90
    seen = page.evaluate("weir.stats.read_monotonic_seconds")
    wait_until(
        lambda: page.evaluate("weir.stats.read_monotonic_seconds") > seen + 1, "further events"
    )
    page.close()
    assert watch.troubles == []
