# SPDX-License-Identifier: MIT
"""The PROXY protocol: which address the log and the limits use, and from where a header counts, on
every model."""

from __future__ import annotations

import contextlib
import os
import signal
import ssl
from pathlib import Path

import pytest

from tests.e2e.certificates import make
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import Client
from tests.e2e.proxied import (
    ELSEWHERE,
    EVERYWHERE,
    LOCAL,
    PROXY,
    UNKNOWN,
    connect_from,
    header,
    line,
    peers,
)
from tests.e2e.running import Server
from tests.e2e.statistics import settled, wait_for
from tests.e2e.test_check import weir
from tests.e2e.wire import Connection, connect
from tests.waiting import wait_until

HELLO = b"hello\n"
LONG = b"\xe0\x0f\xa0" + bytes(4000)  # one value of a type for tests


def proxied(server: ServerFactory, *arguments: str, listen: str = EVERYWHERE) -> Server:
    return server("--proxy-protocol", f"{PROXY}, unix", *arguments, listen=(listen,))


def logging(log: Path) -> tuple[str, ...]:
    return ("--access-log", str(log), "--log-format", "json")


def test_the_log_has_the_client(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = proxied(server, *logging(log))
    starts = {
        "192.0.2.1": line("192.0.2.1"),
        "2001:db8::1": line("2001:db8::1"),
        "192.0.2.2": header("192.0.2.2"),
        "2001:db8::2": header("2001:db8::2"),
        "192.0.2.3": header("192.0.2.3", LONG),
        "192.0.2.4": line("::ffff:192.0.2.4"),
    }
    for count, (client, start) in enumerate(starts.items(), 1):
        with connect_from(running, PROXY, start) as connection:
            assert connection.get("/hello.txt").body == HELLO
            assert connection.get("/hello.txt").body == HELLO
        assert peers(log, 2 * count).count(client) == 2
    numbers = settled(running)["counters"]
    assert numbers["connections_proxied"] == len(starts)
    assert numbers["connections_closed"] == len(starts)


def test_header_and_request_arrive_in_one_piece_or_in_bytes(
    server: ServerFactory, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    running = proxied(server, *logging(log))
    request = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"
    for start in (line("192.0.2.1"), header("192.0.2.1", b"\x04\0\x01x")):
        with connect_from(running, PROXY, start + request) as connection:
            assert connection.read().body == HELLO
        with connect_from(running, PROXY) as connection:
            for byte in start + request:
                connection.send(bytes([byte]))
            assert connection.read().body == HELLO
    assert peers(log, 4) == ["192.0.2.1"] * 4


def test_a_connection_of_the_proxy_itself_has_its_address(
    server: ServerFactory, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    running = proxied(server, *logging(log))
    for start in (UNKNOWN, LOCAL):
        with connect_from(running, PROXY, start) as connection:
            assert connection.get("/hello.txt").body == HELLO
    assert peers(log, 2) == [PROXY, PROXY]


def test_a_unix_socket_can_have_a_proxy(server: ServerFactory, tmp_path: Path) -> None:
    log, path = tmp_path / "access.log", tmp_path / "socket"
    proxied(server, *logging(log), listen=f"unix:{path}")
    with connect(str(path)) as connection:
        connection.send(header("192.0.2.9"))
        assert connection.get("/hello.txt").body == HELLO
    assert peers(log, 1) == ["192.0.2.9"]


@pytest.mark.parametrize("start", [line("192.0.2.1"), header("2001:db8::1")])
def test_the_header_stands_before_tls(server: ServerFactory, tmp_path: Path, start: bytes) -> None:
    log = tmp_path / "access.log"
    pair = make(tmp_path, "own", "localhost")
    running = proxied(server, *pair.flags(), *logging(log), listen="https://0.0.0.0:0")
    context = ssl.create_default_context(cafile=str(pair.certificate))
    for protocol in ("http/1.1", "h2"):
        context.set_alpn_protocols([protocol])
        with connect_from(running, PROXY, start) as plain:
            with context.wrap_socket(plain.socket, server_hostname="localhost") as sealed:
                assert sealed.selected_alpn_protocol() == protocol
                connection = Connection(sealed)
                http2 = protocol == "h2"
                answer = Client(connection).get() if http2 else connection.get("/hello.txt")
                assert answer.body == HELLO
    assert len(set(peers(log, 2))) == 1
    assert peers(log, 2)[0] in ("192.0.2.1", "2001:db8::1")


def test_http2_without_tls_follows_the_header(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = proxied(server, "--h2c", "on", *logging(log))
    with connect_from(running, PROXY, line("192.0.2.1")) as connection:
        client = Client(connection)
        assert [client.get().body for _ in range(3)] == [HELLO] * 3
    assert peers(log, 3) == ["192.0.2.1"] * 3


def test_a_proxy_must_send_the_header(server: ServerFactory) -> None:
    running = proxied(server)
    with connect_from(running, PROXY) as connection:
        answer = connection.get("/hello.txt")
        assert (answer.status, answer.closes) == (400, True)
        assert b"must begin with a PROXY header" in answer.body
        assert connection.read_to_end() == b""
    with connect_from(running, PROXY, b"PROXY TCP4 nobody\r\n") as connection:
        answer = connection.read()
        assert (answer.status, answer.closes) == (400, True)
        assert b"malformed" in answer.body
    causes = wait_for(running, lambda now: now["refused_by_cause"]["proxy_form"] == 1)
    assert causes["refused_by_cause"]["proxy_missing"] == 1
    assert causes["counters"]["connections_proxied"] == 0


def test_no_other_address_may_send_the_header(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = proxied(server, *logging(log))
    request = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"
    for start in (line("192.0.2.1"), header("192.0.2.1")):
        with connect_from(running, ELSEWHERE, start + request) as connection:
            answer = connection.read()
            assert (answer.status, answer.closes) == (400, True)
    with connect_from(running, ELSEWHERE) as connection:
        assert connection.get("/hello.txt").body == HELLO
    assert peers(log, 3) == [ELSEWHERE] * 3
    wait_for(running, lambda now: now["refused_by_cause"]["proxy_unexpected"] == 2)


def test_a_header_that_does_not_end_is_cut_off(server: ServerFactory) -> None:
    running = proxied(server, "--header-timeout", "300ms")
    for start in (b"", b"PROXY TCP4 192.0.2.1", header("192.0.2.1")[:-1]):
        with connect_from(running, PROXY, start) as connection:
            assert connection.read_to_end() == b""
    assert settled(running)["counters"]["timeouts_idle"] == 3


def is_refused(running: Server, client: str) -> bool:
    """Whether a connection of the client, through the proxy, is closed without an answer."""
    with connect_from(running, PROXY, line(client)) as connection:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            return connection.socket.recv(1) == b""
    return True


def test_the_limits_count_the_client(server: ServerFactory) -> None:
    running = proxied(server, "--address-connections", "2", "--workers", "1")
    with contextlib.ExitStack() as held:
        for client in ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]:
            start = header(client)
            connection = held.enter_context(connect_from(running, PROXY, start))
            assert connection.get("/hello.txt").body == HELLO
        assert is_refused(running, "192.0.2.1")
        assert not is_refused(running, "192.0.2.2")
    wait_until(lambda: not is_refused(running, "192.0.2.1"), "it may connect again")
    assert settled(running)["counters"]["connections_limited"] >= 1


def test_the_request_rate_is_that_of_the_client(server: ServerFactory) -> None:
    running = proxied(server, "--address-request-rate", "1", "--workers", "1")
    with connect_from(running, PROXY, line("192.0.2.1")) as connection:
        statuses = [connection.get("/hello.txt").status for _ in range(100)]
        assert statuses[:10] == [200] * 10
        assert 429 in statuses
        with connect_from(running, PROXY, line("192.0.2.2")) as other:
            assert other.get("/hello.txt").status == 200


@pytest.mark.parametrize("model", ["fork"])
def test_a_killed_child_leaves_no_count_behind(server: ServerFactory) -> None:
    running = proxied(server, "--address-connections", "1")
    with connect_from(running, PROXY, line("192.0.2.1")) as held:
        assert held.get("/hello.txt").status == 200
        [child] = running.workers()[0].children()
        os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: not is_refused(running, "192.0.2.1"), "it is admitted again")


@pytest.mark.parametrize("model", ["pool", "prefork"])
def test_a_sticky_pool_reads_the_header(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = proxied(server, "--pool-policy", "sticky", *logging(log))
    for _ in range(3):
        with connect_from(running, PROXY, line("192.0.2.1")) as connection:
            assert connection.get("/hello.txt").body == HELLO
    assert peers(log, 3) == ["192.0.2.1"] * 3


@pytest.mark.parametrize("model", ["epoll"])
def test_check_warns_of_all_addresses_and_names_a_bad_network(
    server: ServerFactory, tmp_path: Path, model: str
) -> None:
    del server, model  # one run is enough
    done = weir("check", ".", "--proxy-protocol", "0.0.0.0/0", cwd=tmp_path)
    assert done.returncode == 0
    assert "any client can claim to be any other" in done.stderr
    done = weir("check", ".", "--proxy-protocol", "unix, 10.0.0.0/33", cwd=tmp_path)
    assert done.returncode != 0
    assert "`10.0.0.0/33` ends without a number of bits" in done.stderr
