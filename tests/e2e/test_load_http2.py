# SPDX-License-Identifier: MIT
"""`weir load --http2`: it counts what happened, with servers that behave well and with servers that
do not."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.certificates import Pair
from tests.e2e.conftest import ServerFactory
from tests.e2e.framed import Framed, framed, head, ok
from tests.e2e.http2 import (
    END_HEADERS,
    END_STREAM,
    PADDED,
    PREFACE,
    PRIORITY_FLAG,
    Code,
    Frame,
    Kind,
    Setting,
    frame,
    settings,
    window_update,
)
from tests.e2e.loading import INVALID, accounts_for, errors, result_of, step_of, weir_load
from tests.e2e.misbehaving import Peer, misbehaving
from tests.e2e.peers import PeerServer, accepts, peer, program_of
from tests.e2e.ports import reserved_port
from tests.e2e.running import TOP, WEIR
from tests.e2e.sealed import Sealed, sealed, url_of
from tests.e2e.statistics import settled
from tests.waiting import LIMIT_S, wait_until

Start = Callable[..., PeerServer]


@pytest.fixture
def nginx(site: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts nginx, which speaks HTTP/2."""
    if not program_of("nginx"):
        pytest.skip("nginx is not installed")
    (site / "long").write_bytes(bytes(range(256)) * 1200)
    with ExitStack() as stack:
        yield lambda **words: stack.enter_context(
            peer("nginx", site, tmp_path, http2=True, **words)
        )


def lines_about(server: PeerServer, path: str) -> int:
    return sum(f" {path} HTTP/2" in line for line in server.stop())


# ---- weir, with every model ----


def bytes_of(line: str) -> int:
    """The body bytes in a line of the log."""
    text = line.split('" ')[1].split()[1]
    return 0 if text == "-" else int(text)


@pytest.mark.parametrize("encrypted", [True, False])
def test_answers_equal_the_log_and_the_counters_of_weir(
    server: ServerFactory, good: Pair, trust: list[str], tmp_path: Path, *, encrypted: bool
) -> None:
    log = tmp_path / "access.log"
    pair = ["--tls-certificate", str(good.certificate), "--tls-key", str(good.key)]
    words, listen = (pair, "https://127.0.0.1:0") if encrypted else (["--h2c", "on"], "127.0.0.1:0")
    running = server(*words, "--access-log", str(log), listen=(listen,))
    ways = [
        ["--users", "3", "--no-keepalive"],
        ["--users", "3", "--pipeline", "16", "--threads", "2"],
        ["--users", "20", "--rate", "2000", "--poisson"],
        ["--users", "2", "--method", "HEAD", "--pipeline", "4"],
        ["--users", "4", "--rate", "2000", "--pipeline", "8"],
        ["--users", "4", "--pace", "5ms", "--pipeline", "8", "--threads", "2"],
        ["--users", "2", "--no-keepalive", "--pipeline", "10"],
    ]
    urls = [f"{running.url}/hello.txt", "/none", "--http2", *(trust if encrypted else [])]
    body_bytes = 0
    for way in ways:
        step = step_of(*urls, *way, "--requests", "200", "--zipf", "1")
        assert (step["answers"], errors(step)) == (200, {})
        assert set(step["status"]) == {"200", "404"}
        if "--no-keepalive" in way:
            streams = int(way[-1]) if "--pipeline" in way else 1
            assert step["connects"] == 200 // streams
        body_bytes += step["body_bytes"]
    numbers = settled(running)
    assert numbers["counters"]["requests"] == 200 * len(ways)
    assert numbers["counters"]["http2_streams_opened"] == 200 * len(ways)
    assert numbers["counters"]["http2_streams_closed"] == 200 * len(ways)
    assert numbers["counters"]["http2_violations"] == numbers["counters"]["http2_floods"] == 0
    running.stop()
    lines = log.read_text().splitlines()
    assert len(lines) == 200 * len(ways)
    assert all("HTTP/2" in line for line in lines)
    assert sum(bytes_of(line) for line in lines) == body_bytes


@pytest.mark.parametrize("pipeline", ["1", "8"])
def test_long_bodies_of_weir_are_whole(
    server: ServerFactory, good: Pair, trust: list[str], site: Path, pipeline: str
) -> None:
    (site / "long").write_bytes(bytes(range(256)) * 8000)
    pair = ["--tls-certificate", str(good.certificate), "--tls-key", str(good.key)]
    running = server(*pair, listen=("https://127.0.0.1:0",))
    words = ["--users", "2", "--requests", "24", "--verify", "hash", "--pipeline", pipeline]
    step = step_of(f"{running.url}/long", "--http2", *trust, *words)
    assert (step["answers"], step["body_bytes"], errors(step)) == (24, 24 * 256 * 8000, {})


# ---- other servers that behave well ----

MANNERS = [
    ["--users", "7"],
    ["--users", "3", "--no-keepalive"],
    ["--users", "3", "--pipeline", "16", "--threads", "2"],
    ["--users", "2", "--pipeline", "100", "--verify", "hash"],
    ["--users", "4", "--threads", "2", "--think", "exp:2ms", "--verify", "hash"],
    ["--users", "30", "--rate", "2000", "--poisson"],
    ["--users", "4", "--pace", "5ms"],
    ["--method", "HEAD", "--pipeline", "4"],
]


@pytest.mark.parametrize("words", MANNERS)
def test_answers_equal_the_lines_of_the_log(
    nginx: Start, good: Pair, trust: list[str], words: list[str]
) -> None:
    server = nginx(identity=good)
    step = step_of(f"{server.url}/hello.txt", "--http2", "--requests", "400", *trust, *words)
    assert errors(step) == {}
    assert step["status"] == {"200": 400}
    assert step["body_bytes"] == (0 if "HEAD" in words else 400 * len("hello\n"))
    assert [one["answers"] for one in step["tls"]["agreed"]] == [400]
    if "--no-keepalive" in words:
        assert step["connects"] == 400
        assert step["tls"]["handshakes_resumed"] == 397
    assert lines_about(server, "/hello.txt") == 400 + step["reopened"]


@pytest.mark.parametrize("words", MANNERS)
def test_answers_equal_the_lines_of_the_log_in_clear_text(nginx: Start, words: list[str]) -> None:
    server = nginx()
    step = step_of(f"{server.url}/hello.txt", "--http2", "--requests", "400", *words)
    assert errors(step) == {}
    assert step["status"] == {"200": 400}
    assert lines_about(server, "/hello.txt") == 400 + step["reopened"]


@pytest.mark.parametrize("pipeline", ["1", "8"])
def test_long_bodies_are_whole(nginx: Start, good: Pair, trust: list[str], pipeline: str) -> None:
    server = nginx(identity=good)
    words = ["--users", "3", "--requests", "60", "--pipeline", pipeline, "--verify", "hash"]
    step = step_of(f"{server.url}/long", "--http2", *trust, *words)
    assert (step["answers"], errors(step)) == (60, {})
    assert step["body_bytes"] == 60 * 256 * 1200
    assert step["received_bytes"] > step["body_bytes"]


def test_several_urls_share_connections_and_several_hosts_do_not(
    nginx: Start, good: Pair, trust: list[str]
) -> None:
    server = nginx(identity=good)
    other = server.url.replace("127.0.0.1", "localhost")
    urls = [f"{server.url}/hello.txt", "/long", f"{other}/hello.txt", "/none"]
    words = ["--users", "1", "--pipeline", "4", "--requests", "300", "--zipf", "1"]
    step = step_of(*urls, "--http2", *trust, *words)
    assert errors(step) == {}
    assert set(step["status"]) == {"200", "404"}
    assert step["answers"] == 300
    assert step["connects"] > 1
    one_host = step_of(f"{server.url}/hello.txt", "/long", "--http2", *trust, *words)
    assert (one_host["connects"], errors(one_host)) == (1, {})


def test_requests_that_a_goaway_excludes_are_sent_again(nginx: Start) -> None:
    """nginx ends each connection after seven requests, while more are on their way."""
    server = nginx(requests=7)
    words = ["--users", "2", "--pipeline", "16", "--requests", "300"]
    step = step_of(f"{server.url}/hello.txt", "--http2", *words)
    accounts_for(step, 300)
    assert (step["answers"], errors(step)) == (300, {})
    assert step["http2"]["goaways"] >= 300 // 7 // 2
    assert step["connects"] >= 300 // 8
    assert lines_about(server, "/hello.txt") == 300 + step["reopened"]


def test_a_load_continues_when_idle_connections_are_closed(nginx: Start) -> None:
    server = nginx(keep_s=1)
    words = ["--users", "3", "--think", "2600ms", "--requests", "6"]
    step = step_of(f"{server.url}/hello.txt", "--http2", *words)
    assert (step["answers"], errors(step)) == (6, {})
    assert lines_about(server, "/hello.txt") == 6 + step["reopened"]


@contextlib.contextmanager
def nghttpd(folder: Path, identity: Pair | None = None) -> Iterator[str]:
    """The server of nghttp2; yields its URL."""
    program = program_of("nghttpd")
    if not program:
        pytest.skip("nghttpd is not installed")
    with reserved_port() as port:
        pair = [str(identity.key), str(identity.certificate)] if identity else ["--no-tls"]
        words = ["-a", "127.0.0.1", "-d", str(folder), *(["--no-tls"] if not identity else [])]
        popen = subprocess.Popen(
            [program, *words, str(port), *(pair if identity else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: accepts(popen, port), "nghttpd accepts connections")
            yield f"http{'s' if identity else ''}://127.0.0.1:{port}"
        finally:
            popen.terminate()
            popen.wait(LIMIT_S)


@contextlib.contextmanager
def h2o(folder: Path, work: Path, identity: Pair) -> Iterator[PeerServer]:
    if not program_of("h2o"):
        pytest.skip("h2o is not installed")
    with reserved_port() as port:
        (work / "h2o.yaml").write_text(
            f"""
{"user: root" if os.geteuid() == 0 else ""}
listen:
  port: {port}
  host: 127.0.0.1
  ssl: {{ certificate-file: {identity.certificate}, key-file: {identity.key}, neverbleed: OFF }}
access-log: {{ path: {work}/log, format: '%h "%r" %s' }}
http2-idle-timeout: 60
hosts: {{ default: {{ paths: {{ /: {{ file.dir: {folder} }} }} }} }}
"""
        )
        popen = subprocess.Popen(
            [str(program_of("h2o")), "-m", "worker", "-c", str(work / "h2o.yaml")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: accepts(popen, port), "h2o accepts connections")
            yield PeerServer(popen, f"https://127.0.0.1:{port}", work / "log")
        finally:
            popen.terminate()
            popen.wait(LIMIT_S)


@pytest.mark.parametrize(
    "words",
    [
        ["--users", "7"],
        ["--users", "3", "--pipeline", "16"],
        ["--users", "3", "--no-keepalive"],
        ["--users", "2", "--pipeline", "4", "--method", "HEAD"],
    ],
)
def test_a_server_that_compresses_with_a_table_is_read(
    site: Path, tmp_path: Path, good: Pair, trust: list[str], words: list[str]
) -> None:
    with h2o(site, tmp_path, good) as server:
        step = step_of(f"{server.url}/hello.txt", "--http2", "--requests", "400", *trust, *words)
        assert errors(step) == {}
        assert step["status"] == {"200": 400}
        assert step["body_bytes"] == (0 if "HEAD" in words else 400 * len("hello\n"))
        assert lines_about(server, "/hello.txt") == 400 + step["reopened"]


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_lower_limit_of_streams_is_kept_and_reported(
    site: Path, good: Pair, trust: list[str], *, encrypted: bool
) -> None:
    with nghttpd(site, good if encrypted else None) as url:
        words = [f"{url}/hello.txt", "--http2", "--users", "2", "--pipeline", "200"]
        if encrypted:
            words += trust
        step = step_of(*words, "--requests", "2000")
        assert (step["answers"], errors(step)) == (2000, {})
        assert (step["http2"]["streams_missing"], step["http2"]["resets"]) == (100, 0)
        (doubt,) = [doubt for doubt in step["doubts"] if doubt["name"] == "streams"]
        assert doubt["reason"] == "A connection had 100 streams at most, and --pipeline is 200."
        assert not doubt["makes_invalid"]


# ---- bodies of requests, and windows ----


def test_a_long_request_keeps_to_the_windows_of_the_server(tmp_path: Path) -> None:
    size, step_size = 300_000, 7_000
    (tmp_path / "body").write_bytes(bytes(size))
    received: list[int] = []

    def behave(connection: Framed) -> None:
        # The first request may begin before the settings arrive, so it gets all of its windows.
        stream = connection.opened()
        connection.send(window_update(stream, size) + window_update(0, size))
        while not connection.until(Kind.DATA).flags & END_STREAM:
            pass
        connection.send(ok(stream))
        while True:
            stream, allowed = connection.opened(), 1000
            got = connection.until(Kind.DATA)
            received.append(len(got.payload))
            while not got.flags & END_STREAM:
                assert received[-1] <= allowed
                if received[-1] == allowed:
                    connection.send(window_update(stream, step_size) + window_update(0, step_size))
                    allowed += step_size
                got = connection.until(Kind.DATA)
                assert len(got.payload) <= 16384
                received[-1] += len(got.payload)
            connection.send(ok(stream) + window_update(0, 1000))

    with framed(behave, {Setting.INITIAL_WINDOW_SIZE: 1000}) as server:
        words = ["--users", "1", "--requests", "3", "--data-file", str(tmp_path / "body")]
        step = step_of(server.url, "--http2", *words)
    assert (step["answers"], errors(step)) == (3, {})
    assert received == [size] * 2
    assert 3 * size < step["sent_bytes"] < 3 * size + 30_000


def test_all_frames_count_as_sent_with_the_last_one_of_each_connection() -> None:
    taken: dict[int, int] = {}  # bytes of each connection

    class Counted(Framed):
        def frame(self) -> Frame:
            got = super().frame()
            taken[self.peer.number] += 9 + len(got.payload)
            return got

    def serve(peer: Peer) -> None:
        connection = Counted(peer)
        connection.preface()
        taken[peer.number] = len(PREFACE)
        connection.send(settings())
        connection.send(ok(connection.request()))
        connection.until(Kind.GOAWAY)
        connection.end()

    with misbehaving(serve) as server:
        words = ["--users", "2", "--requests", "20", "--no-keepalive"]
        step = step_of(server.url, "--http2", *words)
        assert (step["answers"], step["connects"]) == (20, 20)
        # The first connection finds out whether the server speaks HTTP/2.
        wait_until(
            lambda: sum(n for number, n in taken.items() if number > 0) == step["sent_bytes"],
            lambda: f"{step['sent_bytes']} bytes in {taken}",
        )


def silent(connection: Framed) -> bool:
    """Whether the client sends no DATA before it answers a PING."""
    connection.frames.clear()
    connection.send(frame(Kind.PING, 0, b"nothing!"))
    assert connection.until(Kind.PING).payload == b"nothing!"
    return not [got for got in connection.frames if got.kind == Kind.DATA]


def test_the_window_of_a_stream_may_become_negative(tmp_path: Path) -> None:
    size = 100_000
    (tmp_path / "body").write_bytes(bytes(size))
    received: list[int] = []

    def behave(connection: Framed) -> None:
        stream, count = connection.opened(), 0
        while count < 65_535:  # all that the initial window of the connection allows
            count += len(connection.until(Kind.DATA).payload)
        connection.send(
            settings((Setting.INITIAL_WINDOW_SIZE, 30_000))
        )  # that of the stream is -35,535 now
        connection.until(Kind.SETTINGS)
        connection.send(window_update(0, size))
        assert silent(connection)
        connection.send(window_update(stream, 35_535))
        assert silent(connection)
        for initial in (60_000, 70_000):
            connection.send(settings((Setting.INITIAL_WINDOW_SIZE, initial)))
            while count < min(65_535 + initial - 30_000, size):
                count += len(connection.until(Kind.DATA).payload)
            if count < size:
                assert silent(connection)
        received.append(count)
        connection.send(ok(stream))
        connection.request()

    with framed(behave) as server:
        words = ["--users", "1", "--requests", "1", "--data-file", str(tmp_path / "body")]
        step = step_of(server.url, "--http2", *words)
    assert (step["answers"], errors(step)) == (1, {})
    assert received == [size]
    assert (step["http2"]["settings_changes"], step["http2"]["pings"]) == (3, 3)


def test_an_answer_before_the_end_of_a_request_cancels_the_rest(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(bytes(200_000))
    codes: list[int] = []

    def behave(connection: Framed) -> None:
        for _ in range(2):
            stream = connection.opened()
            connection.send(ok(stream) + window_update(0, 65_535))
            got = connection.until(Kind.RST_STREAM)
            assert got.stream == stream
            codes.append(int.from_bytes(got.payload, "big"))
        connection.request()

    with framed(behave) as server:
        words = ["--users", "1", "--requests", "2", "--data-file", str(tmp_path / "body")]
        step = step_of(server.url, "--http2", *words)
    assert (step["answers"], errors(step), step["connects"]) == (2, {}, 1)
    assert codes == [Code.CANCEL] * 2


# ---- answers in unusual forms ----


def answers(connection: Framed) -> None:
    while True:
        connection.send(ok(connection.request()))


def test_the_preface_announces_large_windows_and_no_push() -> None:
    seen: list[list[tuple[int, bytes]]] = []

    def behave(connection: Framed) -> None:
        stream = connection.request()
        seen.append([(got.kind, got.payload) for got in connection.frames])
        connection.send(ok(stream))
        answers(connection)

    with framed(behave) as server:
        step = step_of(server.url, "--http2", "--users", "1", "--requests", "3")
    assert (step["answers"], errors(step)) == (3, {})
    assert seen == [
        [
            (Kind.SETTINGS, bytes.fromhex("000200000000 000440000000")),
            (Kind.WINDOW_UPDATE, (2**30 - 65535).to_bytes(4, "big")),
        ]
    ]


def test_the_connection_ends_with_goaway() -> None:
    ends: list[bytes] = []

    def behave(connection: Framed) -> None:
        connection.send(ok(connection.request()))
        ends.append(connection.until(Kind.GOAWAY).payload)

    with framed(behave) as server:
        words = ["--users", "1", "--requests", "3", "--no-keepalive"]
        step = step_of(server.url, "--http2", *words)
        wait_until(lambda: len(ends) == 3, "three ends")
    assert (step["answers"], errors(step), step["connects"]) == (3, {}, 3)
    assert ends == [bytes(8)] * 3


def test_answers_may_come_in_any_order_and_in_pieces() -> None:
    """Four streams are answered in reverse order, and their frames are mixed."""

    def behave(connection: Framed) -> None:
        connection.send(ok(connection.request()))  # the one before SETTINGS have arrived
        while True:
            streams = [connection.request() for _ in range(4)]
            for stream in reversed(streams):
                connection.send(frame(Kind.HEADERS, stream, head(6), END_HEADERS))
            for part in (b"ab", b"", b"cd"):
                for stream in streams[1:] + streams[:1]:
                    connection.send(frame(Kind.DATA, stream, part))
            for stream in reversed(streams):
                connection.send(frame(Kind.DATA, stream, b"ef", END_STREAM))

    with framed(behave) as server:
        words = ["--users", "2", "--pipeline", "4", "--duration", "500ms", "--warmup", "0"]
        step = step_of(server.url, "--http2", *words)
    assert errors(step) == {}
    assert step["answers"] > 10
    assert step["connects"] == 2


def padded(stream: int) -> bytes:
    return frame(
        Kind.HEADERS,
        stream,
        b"\3" + bytes(5) + head(5) + bytes(3),
        END_HEADERS | PADDED | PRIORITY_FLAG,
    ) + frame(Kind.DATA, stream, b"\7hello" + bytes(7), END_STREAM | PADDED)


def continued(stream: int) -> bytes:
    block = head(5)
    return (
        frame(Kind.HEADERS, stream, block[:2])
        + frame(Kind.CONTINUATION, stream)
        + frame(Kind.CONTINUATION, stream, block[2:], END_HEADERS)
        + frame(Kind.DATA, stream, b"hello", END_STREAM)
    )


def with_trailers(stream: int) -> bytes:
    return (
        frame(Kind.HEADERS, stream, head(5), END_HEADERS)
        + frame(Kind.DATA, stream, b"hello")
        + frame(Kind.HEADERS, stream, b"\0\1a\1b", END_HEADERS | END_STREAM)
    )


def after_interim(stream: int) -> bytes:
    early = frame(Kind.HEADERS, stream, b"\x08\x03103", END_HEADERS)
    return early + early + ok(stream)


def among_unknown(stream: int) -> bytes:
    noise = frame(0xEE, 0, b"what", 0xFF) + frame(Kind.PRIORITY, stream, bytes(5))
    return noise + ok(stream) + noise + window_update(stream, 5)


@pytest.mark.parametrize("answer", [padded, continued, with_trailers, after_interim, among_unknown])
@pytest.mark.parametrize("piece", [None, 1])
def test_every_form_of_an_answer_is_read(answer: Callable[[int], bytes], piece: int | None) -> None:
    def behave(connection: Framed) -> None:
        while True:
            data = answer(connection.request())
            for at in range(0, len(data), piece or len(data)):
                connection.send(data[at : at + (piece or len(data))])

    with framed(behave) as server:
        step = step_of(server.url, "--http2", "--users", "1", "--requests", "8")
    assert (step["answers"], step["body_bytes"], errors(step)) == (8, 40, {})
    assert step["connects"] == 1


# ---- servers without HTTP/2 ----


def test_a_server_without_http2_by_alpn_is_named_before_the_run(
    good: Pair, trust: list[str]
) -> None:
    context = good.context()
    context.set_alpn_protocols(["http/1.1"])
    with sealed(context, lambda connection: connection.end()) as server:
        done = weir_load(url_of(server), "--http2", *trust)
        assert server.requests == 0
    assert (done.returncode, done.stdout) == (INVALID, "")
    assert done.stderr.startswith("weir: localhost:")
    assert "offers no HTTP/2" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_server_without_http2_in_clear_text_is_named_before_the_run() -> None:
    def behave(connection: Peer) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\n\r\n")

    with misbehaving(behave) as server:
        done = weir_load(server.url, "--http2")
    assert (done.returncode, done.stdout) == (INVALID, "")
    assert "does not speak HTTP/2 in clear text" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_server_that_stops_to_offer_http2_is_an_error(good: Pair, trust: list[str]) -> None:
    def serve(connection: Peer) -> None:
        context = good.context()
        context.set_alpn_protocols(["h2"] if connection.number == 0 else ["http/1.1"])
        Sealed(connection, context).handshake()
        connection.wait_for_close()

    with misbehaving(serve) as server:
        step = step_of(url_of(server), "--http2", "--users", "1", "--requests", "3", *trust)
    assert errors(step) == {"tls_no_http2": 3}
    assert step["tls"]["handshakes_failed"] == 3


def test_a_server_learns_that_the_client_offers_both(good: Pair, trust: list[str]) -> None:
    seen: list[str | None] = []
    context: ssl.SSLContext = good.context()
    context.set_alpn_protocols(["http/1.1", "h2"])

    def behave(connection: Sealed) -> None:
        seen.append(connection.tls.selected_alpn_protocol())
        connection.end()

    with sealed(context, behave) as server:
        weir_load(url_of(server), "--http2", "--users", "1", "--requests", "1", *trust)
        wait_until(lambda: seen, "the server has completed the handshake")
    assert seen[0] in ("h2", "http/1.1")


# ---- reports ----


def test_every_form_of_the_report_names_http2(nginx: Start) -> None:
    server = nginx(requests=7)
    url = f"{server.url}/hello.txt"
    words = ["--http2", "--users", "2", "--pipeline", "3", "--requests", "50"]
    text = weir_load(url, *words).stdout
    assert "HTTP/2 by prior knowledge" in text
    assert "3 streams each" in text
    assert "GOAWAY" in text
    assert max(map(len, text.splitlines())) <= 80
    (row,) = csv.DictReader(io.StringIO(weir_load(url, *words, "--csv").stdout))
    assert (row["answers"], row["protocol"], row["streams"]) == ("50", "HTTP/2", "3")
    result = result_of(url, *words)
    assert (result["plan"]["protocol"], result["plan"]["pipeline"]) == ("HTTP/2", 3)
    document = (TOP / "docs/load-json.md").read_text()
    for name in result["steps"][0]["http2"]:
        assert f"`{name}`" in document


def test_runs_of_both_versions_are_not_merged(nginx: Start, tmp_path: Path) -> None:
    with peer("nginx", tmp_path, tmp_path) as plain:
        result = result_of(f"{plain.url}/none", "--requests", "5")
    assert result["plan"]["protocol"] == "HTTP/1.1"
    assert result["steps"][0]["http2"] is None
    server = nginx()
    parts: dict[str, dict[str, Any]] = {}
    files = {}
    for name, shard in (("a", "0/2"), ("b", "1/2")):
        words = ["--http2", "--users", "4", "--requests", "60", "--shard", shard, "--json"]
        done = weir_load(f"{server.url}/hello.txt", *words)
        files[name] = tmp_path / f"{name}.json"
        files[name].write_text(done.stdout)
        parts[name] = json.loads(done.stdout)
    merged = json.loads(weir_load("merge", files["a"], files["b"], "--json").stdout)
    assert merged["plan"]["protocol"] == "HTTP/2"
    assert merged["steps"][0]["answers"] == 60
    assert merged["plan"]["kin"] == parts["a"]["plan"]["kin"] != result["plan"]["kin"]


# ---- system calls ----


@pytest.mark.parametrize("pipeline", [1, 16])
def test_a_batch_of_requests_on_a_warm_connection_costs_one_send(
    nginx: Start, good: Pair, trust: list[str], tmp_path: Path, pipeline: int
) -> None:
    if not program_of("strace"):
        pytest.skip("strace is not installed")
    server = nginx(identity=good)
    out = tmp_path / "strace"
    words = ["--http2", "--users", "1", "--requests", "320", "--pipeline", str(pipeline)]
    subprocess.run(
        [
            *("strace", "-f", "-qq", "-o", str(out), "-e", "trace=sendto,sendmsg"),
            *(str(WEIR), "load", f"{server.url}/hello.txt", *trust, *words),
        ],
        stdout=subprocess.DEVNULL,
        timeout=LIMIT_S,
        check=False,
    )
    sends = sum("send" in line for line in out.read_text().splitlines())
    # The probe, the handshake, the acknowledgement of SETTINGS and the end need some more. Answers
    # to a batch may arrive in several records, and then its requests leave in several batches.
    if pipeline == 1:
        assert 320 <= sends <= 320 + 8
    else:
        assert sends <= 320
