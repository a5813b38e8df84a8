# SPDX-License-Identifier: MIT
"""The statistics page from outside: what it serves and to which clients. It serves whatever happens
to the workers, to its own process, to the configuration and to the binary."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import pwd
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as read_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

from tests.e2e.conftest import Port, ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import STATISTICS, TOP, WEIR, Process, Server, start
from tests.e2e.sockets import tcp_sockets
from tests.e2e.statistics import Numbers, read, settled, weir_stats
from tests.e2e.test_reload import reload, write
from tests.e2e.test_upgrade import replace, upgrade
from tests.e2e.wire import Answer, Connection, WireError, connect
from tests.waiting import LIMIT_S, wait_until

ON = ("--stats-listen", "127.0.0.1:0")
ANY_ADDRESS = {"WEIR_STATS_LISTEN": ""}  # the file or the default decides
SAID = re.compile(r"^statistics: http://(\S+):(\d+)/$", re.MULTILINE)
CHART = Path("/usr/share/javascript/chart.js/chart.min.js")
CONNECTIONS = 64  # PAGE_CONNECTIONS
STREAMS = 48  # PAGE_STREAMS
CHECKS = 4  # PAGE_PASSWORD_CHECKS
PASSWORD = "correct horse: battery staple"
# Its hash by SHA-256 with few rounds: a check takes no time that matters, on any machine.
CHEAP_HASH = "$5$rounds=1000$weirtest$SeIwQP.s2vhguhsRY0WfG8VVjmqPANDXQPq6i/eQvmB"

one_model = pytest.mark.parametrize("model", ["epoll"])
Address = tuple[str, int]


def page_of(running: Server, nth: int = -1) -> Address:
    """The address of the page, as the server has printed it."""
    host, port = SAID.findall(running.messages())[nth]
    return host.strip("[]"), int(port)


def get(address: Address, path: str, *fields: str, host: str = "localhost") -> Answer:
    with connect(address) as connection:
        return connection.get(path, host, *fields)


def moments_of(found: Numbers) -> list[float]:
    """The recorded seconds, by the server's monotonic clock."""
    read_at = found["read_monotonic_seconds"]
    return [round(read_at - moment["seconds_ago"], 3) for moment in found["moments"]]


def body(address: Address, path: str) -> bytes:
    answer = get(address, path)
    assert answer.status == 200, answer
    return answer.body


def numbers(address: Address) -> Numbers:
    found: Numbers = json.loads(body(address, "/stats.json"))
    return found


def page_process(running: Server) -> Process | None:
    return next((p for p in running.master.children() if p.comm == STATISTICS), None)


def the_process(running: Server) -> Process:
    found = wait_until(lambda: page_process(running), running.messages)
    assert found
    return found


def another_process(running: Server, victim: Process) -> None:
    wait_until(lambda: page_process(running) not in (None, victim), running.messages)


def wait_for_requests(page: Address, count: int) -> None:
    wait_until(
        lambda: numbers(page)["counters"]["requests"] == count, f"{count} requests are counted"
    )


def open_families(text: str) -> list[Metric]:
    """The metrics that a parser of OpenMetrics reads."""
    return list(read_openmetrics(text))  # type: ignore[no-untyped-call]


@pytest.fixture
def running(server: ServerFactory) -> Server:
    return server(*ON)


class Events:
    """An open event stream."""

    def __init__(self, address: Address, last: str = "") -> None:
        known = f"Last-Event-ID: {last}\r\n" if last else ""
        self.connection = Connection.to(address)
        self.connection.send(f"GET /events HTTP/1.1\r\nHost: localhost\r\n{known}\r\n".encode())
        self.id = self.kind = ""
        self.length = 0
        self.data = b""
        self.head = self.until(b"\r\n\r\n").decode()

    def until(self, end: bytes) -> bytes:
        while end not in self.data:
            if not (got := self.connection.socket.recv(65536)):
                raise WireError("the stream has ended")
            self.data += got
        found, _, self.data = self.data.partition(end)
        return found

    def to_the_end(self) -> None:
        with contextlib.suppress(WireError, ConnectionError):
            while True:
                self.until(b"\n\n")
        self.connection.close()

    def next(self) -> Numbers:
        text = self.until(b"\n\n").decode()
        names, values = zip(*(line.split(": ", 1) for line in text.splitlines()), strict=True)
        assert names == ("id", "event", "data")
        self.length = len(text)
        self.id, self.kind, data = values
        found: Numbers = json.loads(data)
        return found

    def seen(self) -> list[float]:
        """The recorded seconds in the next event, by the server's clock."""
        return moments_of(self.next())


# ---- what it serves ----


@one_model
def test_the_page_serves_its_files_and_no_others(running: Server) -> None:
    page = page_of(running)
    files = {f"/{file.name}": file for file in (TOP / "src/page/www").iterdir()}
    for path, file in {**files, "/": files["/index.html"], "/chart.js": CHART}.items():
        plain = get(page, path)
        assert (plain.status, plain.body) == (200, file.read_bytes()), path
        assert plain.get("Content-Encoding") is None
        packed = get(page, path, "Accept-Encoding: br, gzip;q=0.5")
        assert gzip.decompress(packed.body) == plain.body
        assert packed.get("Content-Encoding") == "gzip"
        assert packed.get("Vary") == plain.get("Vary") == "Accept-Encoding"
        assert plain.get("ETag") != packed.get("ETag")
        for answer, accepts in ((plain, ""), (packed, "gzip")):
            tag = answer.get("ETag")
            same = get(page, path, f"If-None-Match: {tag}", f"Accept-Encoding: {accepts}")
            assert (same.status, same.body, same.get("ETag")) == (304, b"", tag)
        other = get(page, path, 'If-None-Match: "another"')
        assert other.status == 200
    for path in ("/nothing", "/page", "/../etc/passwd", "/www/index.html", "/index.html/"):
        assert get(page, path).status in (400, 404), path


@one_model
def test_every_answer_has_the_security_fields(running: Server) -> None:
    page = page_of(running)
    for path in ("/", "/chart.js", "/stats.json", "/metrics", "/healthz", "/nothing", "/%zz"):
        answer = get(page, path)
        policy = answer.get("Content-Security-Policy") or ""
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.get("X-Content-Type-Options") == "nosniff"
        assert answer.get("Referrer-Policy") == "no-referrer"
        assert answer.get("Content-Type")
    assert "unsafe" not in (TOP / "src/page/answer.c").read_text()


@one_model
def test_head_has_no_body_and_other_methods_are_refused(running: Server) -> None:
    page = page_of(running)
    for path in ("/", "/stats.json", "/metrics", "/healthz", "/events", "/nothing"):
        with connect(page) as connection:
            connection.send(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = connection.read_to_end() if path == "/events" else b""
            if path != "/events":
                answer = connection.read(bodiless=True)
                assert answer.status == (404 if path == "/nothing" else 200)
                assert int(answer.get("Content-Length") or 0) > 0
                assert connection.get("/healthz", "localhost").status == 200
            else:
                assert head.endswith(b"\r\n\r\n")
    for wrong in (b"Host : localhost", b"X: " + b"x" * 9000):
        with connect(page) as connection:
            connection.send(b"HEAD / HTTP/1.1\r\n" + wrong + b"\r\n\r\n")
            head = connection.read_to_end()
            assert re.match(rb"HTTP/1.1 4\d\d ", head)
            assert head.endswith(b"\r\n\r\n")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"):
        with connect(page) as connection:
            length = "Content-Length: 5\r\n" if method in ("POST", "PUT") else ""
            request = f"{method} / HTTP/1.1\r\nHost: localhost\r\n{length}\r\n"
            connection.send(request.encode() + b"12345" * (method in ("POST", "PUT")))
            answer = connection.read()
            assert (answer.status, answer.get("Allow")) == (405, "GET, HEAD"), method
            assert answer.closes


@one_model
def test_the_json_equals_that_of_weir_stats(running: Server) -> None:
    page = page_of(running)
    with connect(running.address) as connection:
        for path in ("/hello.txt", "/nothing", "/", "/hello.txt"):
            connection.get(path)
    settled(running)
    served, printed = numbers(page), read(running.master.pid)
    for each in (served, printed):
        del each["counters"]["accept_overflows"]  # the kernel counts for the whole machine
    for part in ("counters", "answers_by_status", "unreadable_by_status", "sites", "configuration"):
        assert served[part] == printed[part], part
    assert served.keys() == printed.keys()
    assert (served["pid"], served["state"]) == (running.master.pid, "serving")
    assert served["machine"]["processes"] == printed["machine"]["processes"]
    assert get(page, "/stats.json").get("Cache-Control") == "no-store"


@one_model
def test_a_stream_sends_numbers_at_once_and_then_repeatedly(running: Server) -> None:
    page = page_of(running)
    streams = [Events(page) for _ in range(3)]
    for stream in streams:
        assert "content-type: text/event-stream" in stream.head.lower()
        assert "cache-control: no-store" in stream.head.lower()
        assert stream.until(b"\n\n") == b"retry: 1000"
        assert stream.next()["pid"] == running.master.pid
    before = streams[0].next()["counters"]["requests"]
    with connect(running.address) as connection:
        for _ in range(10):
            connection.get("/hello.txt")
    wait_until(
        lambda: streams[0].next()["counters"]["requests"] >= before + 10, "the requests are counted"
    )
    first = streams[1].next()["read_unix_seconds"]
    times = [streams[1].next()["read_unix_seconds"] for _ in range(3)]
    assert times == sorted(times)
    assert times[-1] > first
    for stream in streams:
        stream.connection.close()


@one_model
def test_a_stream_repeats_no_second_that_the_client_has(running: Server) -> None:
    page = page_of(running)
    wait_until(lambda: len(numbers(page)["moments"]) >= 3, "three seconds are recorded")
    stream = Events(page)
    stream.until(b"\n\n")
    whole = stream.next()
    moments = moments_of(whole)
    assert stream.kind == "stats"
    assert whole.keys() == numbers(page).keys()
    for _ in range(3):
        second = stream.next()
        assert stream.kind == "second"
        assert whole.keys() - second.keys() <= {"about"}
        assert len(second["moments"]) <= 2
        moments += moments_of(second)
    assert moments == moments_of(numbers(page))[: len(moments)]
    last, known = stream.id, moments[-1]
    stream.connection.close()
    wait_until(
        lambda: len(numbers(page)["moments"]) >= len(moments) + 2, "more seconds are recorded"
    )
    missed = [moment for moment in moments_of(numbers(page)) if moment > known]
    again = Events(page, last)
    again.until(b"\n\n")
    assert again.seen()[: len(missed)] == missed
    assert again.kind == "second"
    again.connection.close()
    master, started, at = last.split("-")
    for other in (f"1-{started}-{at}", f"{master}-1-{at}", f"{master}-{started}-1", "a", at, "-1"):
        stream = Events(page, other)
        stream.until(b"\n\n")
        stream.next()
        assert stream.kind == "stats", other
        stream.connection.close()


@one_model
def test_prometheus_reads_both_formats(running: Server) -> None:
    page = page_of(running)
    with connect(running.address) as connection:
        for _ in range(5):
            connection.get("/hello.txt")
    wait_for_requests(page, 5)
    plain = get(page, "/metrics", "Accept: */*")
    assert plain.get("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    open_ = get(
        page,
        "/metrics",
        "Accept: application/openmetrics-text;version=1.0.0;q=0.5,"
        "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
    )
    kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert open_.get("Content-Type") == kind
    assert open_.body.endswith(b"\n# EOF\n")
    families = [
        list(read_prometheus(plain.body.decode())),
        open_families(open_.body.decode()),
    ]
    samples = [
        {(s.name, tuple(sorted(s.labels.items()))): s.value for f in each for s in f.samples}
        for each in families
    ]
    assert samples[0].keys() == samples[1].keys()
    counted = {key: value for key, value in samples[0].items() if key[0].endswith("_total")}
    moving = "weir_cpu_seconds_total"
    assert {k: v for k, v in counted.items() if k[0] != moving} == {
        k: v for k, v in samples[1].items() if k in counted and k[0] != moving
    }
    assert samples[0][("weir_requests_total", ())] == 5
    units = {family.name: family.unit for family in families[1]}
    assert units["weir_latency_seconds"] == "seconds"
    assert units["weir_resident_bytes"] == "bytes"
    printed = weir_stats("--openmetrics", str(running.master.pid))
    # A page that runs as another user may not read the descriptors of the server.
    descriptors = {f"weir_descriptors{end}" for end in ("", "_fullest", "_fullest_limit")}
    names = {family.name for family in open_families(printed.stdout)}
    assert names == set(units) | descriptors


# ---- health ----


def test_the_health_check_fails_as_soon_as_a_drain_begins(server: ServerFactory) -> None:
    running = server(*ON, "--drain-timeout", "60s", "--drain-idle", "60s")
    page = page_of(running)
    healthy = get(page, "/healthz")
    assert (healthy.status, healthy.body) == (200, b"serving\n")
    with connect(running.address) as held:
        held.get("/hello.txt")
        held.send(b"GET /hello.txt HTTP/1.1\r\n")
        running.signal(signal.SIGTERM)
        wait_until(lambda: get(page, "/healthz").status == 503, "the health check fails")
        assert get(page, "/healthz").body == b"stopping\n"
        assert numbers(page)["state"] == "stopping"
        # The process of the page is replaced until the drain is over.
        victim = the_process(running)
        os.kill(victim.pid, signal.SIGTERM)
        another_process(running, victim)
        assert get(page, "/healthz").body == b"stopping\n"
        held.send(b"Host: a\r\n\r\n")
        assert held.read().status == 200
    assert running.wait() == 0
    with pytest.raises(ConnectionRefusedError):
        get(page, "/healthz")


@pytest.mark.parametrize("keep", [True, False])
def test_requests_are_served_during_the_drain_delay(server: ServerFactory, keep: bool) -> None:
    running = server(*ON, "--drain-delay", "10m")
    page = page_of(running)
    with Load(running.address, "/hello.txt", b"hello\n", clients=3, keep=keep) as load:
        load.wait_for(20)
        running.signal(signal.SIGTERM)
        wait_until(lambda: get(page, "/healthz").status == 503, "the health check fails")
        assert get(page, "/healthz").body == b"stopping\n"
        load.wait_for(20)
        assert load.count().failed == load.count().parted == 0
        assert "no new connections" not in running.messages()
    running.signal(signal.SIGTERM)  # does not wait for the delay
    assert running.wait() == 0


def test_the_page_answers_while_the_workers_hang(server: ServerFactory) -> None:
    running = server(*ON)
    page = page_of(running)
    workers = running.workers()
    for worker in workers:
        os.kill(worker.pid, signal.SIGSTOP)
    try:
        assert body(page, "/healthz") == b"serving\n"
        assert numbers(page)["pid"] == running.master.pid
        assert body(page, "/metrics")
    finally:
        for worker in workers:
            os.kill(worker.pid, signal.SIGCONT)


# ---- clients that misbehave ----


@one_model
def test_garbage_is_refused_and_the_process_survives(running: Server) -> None:
    page = page_of(running)
    process = the_process(running)
    chance = random.Random(4)
    seeds = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic Og==\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: [::1]:80\r\nAccept: a/b;q=1;version=,;,\r\n\r\n",
        b'GET http://localhost/healthz HTTP/1.0\r\nIf-None-Match: W/"a", *\r\n\r\n',
    ]
    for _ in range(300):
        data = bytearray(chance.choice(seeds) * chance.randint(1, 3))
        for _ in range(chance.randint(0, 6)):
            at = chance.randrange(len(data))
            data[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 4))
        with connect(page) as connection, contextlib.suppress(ConnectionError):
            connection.send(bytes(data))
            if chance.random() < 0.5:
                connection.end_sending()
                connection.socket.recv(65536)
    for piece in (b"\0" * 9000, b"GET /" + b"a" * 9000, b"G" * 100, b"\r\n" * 9):
        with connect(page) as connection, contextlib.suppress(ConnectionError):
            connection.send(piece)
            connection.end_sending()
            assert connection.read_to_end()[:12] in (
                b"",
                b"HTTP/1.1 431",
                b"HTTP/1.1 400",
                b"HTTP/1.1 501",
            )
    assert body(page, "/healthz") == b"serving\n"
    assert the_process(running) == process, "the process died of it"


@one_model
def test_a_head_that_is_too_long_is_refused(running: Server) -> None:
    with connect(page_of(running)) as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"c" * 8192)
        assert connection.read().status == 431
        assert connection.read_to_end() == b""


@one_model
def test_the_page_survives_more_clients_than_its_limit(running: Server) -> None:
    page = page_of(running)
    with contextlib.ExitStack() as stack:
        # Each has sent the beginning of a request.
        silent = [stack.enter_context(connect(page)) for _ in range(CONNECTIONS + 20)]
        for connection in silent:
            with contextlib.suppress(ConnectionError):
                connection.send(b"GET / HTTP/1.1\r\n")
        assert body(page, "/healthz") == b"serving\n"
        streams = [Events(page) for _ in range(STREAMS)]
        refused = get(page, "/events")
        assert (refused.status, refused.get("Retry-After")) == (503, "5")
        assert body(page, "/stats.json")
        for stream in streams:
            stream.until(b"\n\n")
            assert stream.next()
            stream.connection.close()
        wait_until(lambda: is_streaming(page), "another stream is accepted")
    assert body(page, "/healthz") == b"serving\n"


def is_streaming(page: Address) -> bool:
    """Whether another stream is accepted."""
    stream = Events(page)
    stream.connection.close()
    return "200 OK" in stream.head


@one_model
def test_a_client_that_does_not_read_delays_no_other_stream(running: Server) -> None:
    page = page_of(running)
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.connect(page)
    with lazy:
        for _ in range(8):  # more than its buffers take
            lazy.sendall(b"GET /chart.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stream = Events(page)
        stream.until(b"\n\n")
        for _ in range(3):
            assert stream.next()
        assert len(body(page, "/chart.js")) == CHART.stat().st_size
        stream.connection.close()


@one_model
def test_clients_that_do_not_read_their_answers_keep_no_other_out(running: Server) -> None:
    page = page_of(running)
    with contextlib.ExitStack() as stack:
        slow = []
        for _ in range(CONNECTIONS):
            made = stack.enter_context(socket.socket())
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            made.connect(page)
            # Many answers, each larger than the buffers, from one piece.
            made.sendall(b"GET /chart.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 160)
            slow.append(made)
        for made in slow:
            assert made.recv(1)
        other = stack.enter_context(connect(page))
        other.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")

        def is_answered() -> bool:
            """Reads a little, so that each answer ends in time and another begins."""
            for made in slow:
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    made.recv(1024, socket.MSG_DONTWAIT)
            return bool(select.select([other.socket], [], [], 0)[0])

        wait_until(is_answered, "an answer to another client")
        assert other.read().body == b"serving\n"


@one_model
def test_pipelined_requests_are_answered_in_their_order(running: Server) -> None:
    with connect(page_of(running)) as connection:
        paths = ["/healthz", "/nothing", "/stats.json", "/chart.js", "/healthz"] * 4
        connection.send(
            b"".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths)
        )
        statuses = [connection.read().status for _ in paths]
    assert statuses == [404 if path == "/nothing" else 200 for path in paths]


# ---- which clients are allowed ----


@one_model
@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8081", "127.9.9.9", "[::1]:5"]
)
def test_this_machine_is_allowed_by_its_names(running: Server, host: str) -> None:
    assert get(page_of(running), "/stats.json", host=host).status == 200


@one_model
@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1.nip.io", "[::2]", "[::1"],
)
def test_another_host_is_refused_to_prevent_rebinding(running: Server, host: str) -> None:
    page = page_of(running)
    for path in ("/", "/stats.json", "/events", "/metrics", "/healthz"):
        answer = get(page, path, host=host)
        assert answer.status in (400, 421), path
        assert running.master.pid not in map(int, re.findall(rb"\d+", answer.body))
    with connect(page) as connection:
        connection.send(
            f"GET http://{host}/stats.json HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        assert connection.read().status in (400, 421)
    with connect(page) as connection:
        connection.send(b"GET / HTTP/1.1\r\n\r\n")
        assert connection.read().status == 400


@pytest.fixture(scope="module")
def password_hash() -> str:
    done = subprocess.run(
        [WEIR, "password"], input=f"{PASSWORD}\n", capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def credentials(password: str, user: str = "anybody") -> str:
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@one_model
def test_a_password_is_required(server: ServerFactory, password_hash: str) -> None:
    running = server(*ON, "--stats-password", password_hash)
    page = page_of(running)
    for path in ("/", "/page.js", "/stats.json", "/events", "/metrics", "/nothing"):
        answer = get(page, path)
        assert answer.status == 401, path
        assert (answer.get("WWW-Authenticate") or "").startswith("Basic realm=")
    assert body(page, "/healthz") == b"serving\n"
    for field in (
        credentials("wrong"),
        credentials(""),
        "Authorization: Basic",
        "Authorization: Basic !!!!",
        "Authorization: Bearer " + base64.b64encode(b"a:b").decode(),
        "Authorization: Basic " + base64.b64encode(b"\0" * 2000).decode(),
        "Authorization: Basic " + base64.b64encode(PASSWORD.encode()).decode().replace("=", ""),
    ):
        assert get(page, "/stats.json", field).status in (401, 429), field
    # In the second of the wrong passwords no more are checked.
    wait_until(
        lambda: get(page, "/stats.json", credentials(PASSWORD)).status == 200,
        "the password is accepted",
    )
    for user in ("anybody", "", "ü"):
        assert get(page, "/stats.json", credentials(PASSWORD, user)).status == 200
    # With a password the name does not matter.
    assert get(page, "/", credentials(PASSWORD), host="stats.example.org").status == 200


@one_model
def test_a_flood_of_wrong_passwords_gets_429_and_does_not_lock_the_operator_out(
    server: ServerFactory,
) -> None:
    running = server(*ON, "--stats-password", CHEAP_HASH)
    page = page_of(running)
    assert get(page, "/stats.json", credentials(PASSWORD)).status == 200
    with connect(page) as connection:
        for batch in range(20):
            # Requests that arrive together fall into the same second, in which few are checked.
            guesses = [f"guess {batch}.{at}" for at in range(CHECKS + 6)]
            requests = [f"GET / HTTP/1.1\r\nHost: a\r\n{credentials(g)}\r\n\r\n" for g in guesses]
            connection.send("".join(requests).encode())
            answers = [connection.read() for _ in guesses]
            statuses = [answer.status for answer in answers]
            assert set(statuses) <= {401, 429}
            assert statuses.count(401) <= CHECKS
            assert all(a.get("Retry-After") == "1" for a in answers if a.status == 429)
            assert get(page, "/stats.json", credentials(PASSWORD)).status == 200


@one_model
def test_the_same_wrong_password_is_checked_only_once(
    server: ServerFactory, password_hash: str
) -> None:
    running = server(*ON, "--stats-password", password_hash)
    with connect(page_of(running)) as connection:
        statuses = {connection.get("/", "a", credentials("old")).status for _ in range(50)}
    assert statuses == {401}


# ---- the address of the page ----


def written(tmp_path: Path, site: Path, line: str) -> Path:
    return write(tmp_path / "weir.conf", site, f"listen = 127.0.0.1:0\n{line}")


@pytest.fixture
def configured(tmp_path: Path, site: Path) -> Iterator[Callable[[str], Server]]:
    started: list[Server] = []

    def make(line: str) -> Server:
        arguments = ["-c", str(written(tmp_path, site, line)), "--model", "epoll"]
        name = tmp_path / f"stderr-{len(started)}"
        started.append(start(arguments, name, environment=ANY_ADDRESS))
        return started[-1]

    yield make
    for each in started:
        each.stop()


def test_without_a_setting_the_page_has_port_8081_or_a_free_port(
    configured: Callable[[str], Server],
) -> None:
    with contextlib.suppress(OSError), socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 8081))
        other.listen()
        first = configured("")
        assert page_of(first)[1] != 8081
        assert numbers(page_of(first))["pid"] == first.master.pid
    several = [configured(""), configured("")]
    pages = [page_of(each) for each in several]
    assert pages[0] != pages[1]
    for running, page in zip(several, pages, strict=True):
        assert numbers(page)["pid"] == running.master.pid


def test_a_configured_address_that_is_in_use_is_an_error(tmp_path: Path, site: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = written(tmp_path, site, f"stats-listen = 127.0.0.1:{port}")
        done = subprocess.run(
            [WEIR, "serve", "-c", config],
            env={**os.environ, **ANY_ADDRESS},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 1
    assert f"{config}:3: stats-listen: cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "for the statistics page: Address already in use" in done.stderr
    assert done.stderr.endswith("stop it, or choose another port\n")


@pytest.mark.parametrize("line", ["stats-listen = off", "stats = off"])
def test_the_page_can_be_turned_off(configured: Callable[[str], Server], line: str) -> None:
    running = configured(line)
    assert not SAID.search(running.messages())
    assert page_process(running) is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stats-listen = *:8081", "needs a stats-password"),
        ("stats-listen = 192.0.2.1:8081", "needs a stats-password"),
        ("stats-listen = [2001:db8::1]:8081", "needs a stats-password"),
        ("stats-listen = off, 127.0.0.1:8081", "remove one"),
        ("stats-listen = 127.0.0.1", "has no port"),
        ("stats-password = geheim", "is not the hash of a password"),
        ("stats-password = $y$j9T$", "is not the hash of a password"),
        ("listen = 127.0.0.1:9999\nstats-listen = 9999", "one of its own"),
    ],
)
def test_a_mistake_is_reported_with_its_line(
    tmp_path: Path, site: Path, line: str, message: str
) -> None:
    config = tmp_path / "weir.conf"
    config.write_text(f"[server]\n{line}\n[site a]\nroot = {site}\n")
    done = subprocess.run(
        [WEIR, "check", config],
        env={**os.environ, **ANY_ADDRESS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert f"weir.conf:{1 + len(line.splitlines())}: " in done.stderr


def test_a_hash_is_not_shown(tmp_path: Path, site: Path, password_hash: str) -> None:
    config = written(tmp_path, site, f"stats-password = {password_hash}")
    done = subprocess.run(
        [WEIR, "check", config, "--explain"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "(hidden)" in done.stdout
    assert password_hash not in done.stdout


def test_the_page_can_listen_on_a_unix_socket(
    configured: Callable[[str], Server], tmp_path: Path
) -> None:
    running = configured(f"stats-listen = unix:{tmp_path}/s")
    with connect(f"{tmp_path}/s") as connection:
        assert connection.get("/healthz", "anything").body == b"serving\n"
    running.stop()
    assert not (tmp_path / "s").exists()


# ---- the process of the page ----


@one_model
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGQUIT])
def test_the_process_is_replaced_when_it_ends(running: Server, number: signal.Signals) -> None:
    page, workers = page_of(running), running.workers()
    deaths = numbers(page)["counters"]["worker_deaths"]
    for _ in range(5):
        victim = the_process(running)
        os.kill(victim.pid, number)
        another_process(running, victim)
        assert body(page, "/healthz") == b"serving\n"
    assert running.workers() == workers
    assert numbers(page)["counters"]["worker_deaths"] == deaths


@one_model
def test_the_page_is_served_with_few_descriptors(server: ServerFactory) -> None:
    """poll(2) refuses more elements than descriptors that the process may have."""
    few = ("sh", "-c", 'ulimit -n 64 && exec "$@"', "sh")
    running = server("--stats-listen", "127.0.0.1:0", wrapper=few)
    assert body(page_of(running), "/healthz") == b"serving\n"


@one_model
def test_signals_from_a_terminal_do_not_end_the_process(running: Server) -> None:
    victim = the_process(running)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE):
        os.kill(victim.pid, number)
    assert body(page_of(running), "/healthz") == b"serving\n"
    assert the_process(running) == victim


@one_model
def test_the_process_ends_with_a_killed_master(tmp_path: Path, site: Path, model: str) -> None:
    running = start(
        [str(site), "--listen", "127.0.0.1:0", "--model", model, *ON], tmp_path / "stderr"
    )
    process, workers = the_process(running), running.workers()
    stream = Events(page_of(running))
    os.kill(running.popen.pid, signal.SIGKILL)
    running.popen.wait()
    wait_until(
        lambda: not any(each.alive for each in [process, *workers]), "all processes have ended"
    )
    stream.to_the_end()


@one_model
def test_the_process_holds_only_what_it_needs(running: Server) -> None:
    process = the_process(running)
    site = running.address[1]
    listener = next(each for each in tcp_sockets(site) if each.listens)
    assert body(page_of(running), "/healthz")
    # Its listener, the pair that reports the end of the master, and the mailbox of its log.
    wait_until(lambda: len(process.sockets()) == 3, process.descriptors)
    held = process.descriptors().values()
    assert listener.link not in held, "it has the site's listener"
    assert not any(link.endswith((".log", ".sock")) for link in held)
    segment = [fd for fd, link in process.descriptors().items() if "/dev/shm/" in link]
    assert len(segment) > 1  # the head, and an arena for each process that counts
    for fd in segment:
        flags = Path(f"/proc/{process.pid}/fdinfo/{fd}").read_text()
        assert re.search(r"^flags:\s+\d*[04]$", flags, re.MULTILINE), "it may write what it shows"
    for worker in running.workers():
        assert not worker.sockets() & process.sockets(), "a worker has the page's listener"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@one_model
def test_the_process_runs_as_the_user_of_the_workers(server: ServerFactory) -> None:
    with tempfile.TemporaryDirectory(prefix="weir-page-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        running = server(*ON, "--user", "nobody", folder=folder)
        assert body(page_of(running), "/healthz")  # it has changed its user by now
        status = Path(f"/proc/{the_process(running).pid}/status").read_text()
        uid = pwd.getpwnam("nobody").pw_uid
        assert re.search(rf"^Uid:\s+{uid}\s+{uid}\s+{uid}\s+{uid}$", status, re.MULTILINE)
        assert numbers(page_of(running))["pid"] == running.master.pid
        assert numbers(page_of(running))["machine"]["descriptors"] == 0  # it may not read them
        exposed = body(page_of(running), "/metrics").decode()
        assert "weir_resident_bytes" in exposed
        assert "weir_descriptors" not in exposed
        victim = the_process(running)
        os.kill(victim.pid, signal.SIGKILL)
        another_process(running, victim)
        assert numbers(page_of(running))["counters"]


# ---- reloads and upgrades ----


def test_a_reload_without_a_change_of_the_page_keeps_its_process(
    configured: Callable[[str], Server], tmp_path: Path, site: Path
) -> None:
    running = configured("stats-listen = 127.0.0.1:0")
    page, process = page_of(running), the_process(running)
    stream = Events(page)
    written(tmp_path, site, "stats-listen = 127.0.0.1:0\nserver-header = off")
    assert reload(running)[0]
    stream.until(b"\n\n")
    wait_until(
        lambda: stream.next()["configuration"]["number"] == 2, "the new configuration is shown"
    )
    assert the_process(running) == process
    stream.connection.close()


def test_a_reload_moves_the_page(
    configured: Callable[[str], Server],
    tmp_path: Path,
    site: Path,
    password_hash: str,
    port: Port,
) -> None:
    running = configured("stats-listen = 127.0.0.1:0")
    old, process = page_of(running), the_process(running)
    new = ("127.0.0.1", port())
    written(tmp_path, site, f"stats-listen = 127.0.0.1:{new[1]}")
    assert reload(running)[0], running.messages()
    assert numbers(new)["pid"] == running.master.pid
    wait_until(lambda: not process.alive, "the old process has ended")
    with pytest.raises(ConnectionRefusedError):
        get(old, "/healthz")
    process = the_process(running)
    written(tmp_path, site, f"stats-listen = {new[1]}\nstats-password = {password_hash}")
    assert reload(running)[0]
    wait_until(lambda: not process.alive, "the old process has ended")
    wait_until(lambda: get(new, "/").status == 401, "the page requires a password")
    assert get(new, "/stats.json", credentials(PASSWORD)).status == 200
    written(tmp_path, site, "stats-listen = off")
    assert reload(running)[0]
    wait_until(lambda: page_process(running) is None, "the page's process has ended")
    with pytest.raises(ConnectionRefusedError):
        get(new, "/healthz")
    written(tmp_path, site, f"stats-listen = {new[1]}")
    assert reload(running)[0]
    assert body(new, "/healthz") == b"serving\n"


def test_a_reload_that_cannot_move_the_page_fails(
    configured: Callable[[str], Server], tmp_path: Path, site: Path
) -> None:
    running = configured("stats-listen = 127.0.0.1:0")
    page, process = page_of(running), the_process(running)
    with socket.create_server(("127.0.0.1", 0)) as other:
        written(tmp_path, site, f"stats-listen = 127.0.0.1:{other.getsockname()[1]}")
        good, why = reload(running)
    assert not good
    assert "for the statistics page: Address already in use" in why
    assert (body(page, "/healthz"), the_process(running)) == (b"serving\n", process)


@one_model
def test_an_upgrade_keeps_the_address_and_the_counters(
    server: ServerFactory, tmp_path: Path
) -> None:
    binary = tmp_path / "weir"
    shutil.copy2(WEIR, binary)
    running = server(*ON, "--listen", "127.0.0.1:0", weir=binary)
    page, old = page_of(running), the_process(running)
    with connect(running.address) as connection:
        for _ in range(20):
            connection.get("/hello.txt")
    wait_for_requests(page, 20)
    stream = Events(page)
    replace(binary)
    new = upgrade(running)
    try:
        assert page_of(running) == page
        after = numbers(page)
        assert after["pid"] == new.pid
        assert after["state"] == "serving"
        assert after["counters"]["requests"] == 20
        with connect(running.address) as connection:
            connection.get("/hello.txt")
        wait_for_requests(page, 21)
        assert not old.alive
        stream.to_the_end()  # its client connects again
        assert [child.comm for child in new.children()].count(STATISTICS) == 1
    finally:
        children = new.descendants()
        os.kill(new.pid, signal.SIGTERM)
        wait_until(
            lambda: not any(process.alive for process in [new, *children]), "the server has ended"
        )
