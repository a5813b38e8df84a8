# SPDX-License-Identifier: MIT
"""Slow clients are served or closed after a timeout, and do not stop other clients."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.sockets import tcp_sockets
from tests.e2e.statistics import Numbers, wait_for
from tests.e2e.wire import Connection, connect, parse_answer
from tests.waiting import LIMIT_S, wait_until


def sockets_of(server: Server) -> set[str]:
    """The sockets of all workers and their children. Each connection adds one."""
    return set().union(*(process.sockets() for process in server.master.descendants()))


def tiny_connection(running: Server) -> Connection:
    """A connection with the smallest receive buffer that the kernel allows."""
    return Connection.to(running.address, receive_buffer=1024)


def test_a_slow_reader_receives_a_large_file_while_others_are_served(
    server: ServerFactory, site: Path
) -> None:
    content = os.urandom(5_000_000)
    (site / "big.bin").write_bytes(content)
    running = server()
    slow = tiny_connection(running)
    got = bytearray()
    try:
        slow.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        with connect(running.address) as other:
            while more := slow.socket.recv(16384):
                if len(got) % 97 == 0:
                    assert other.get("/hello.txt").body == b"hello\n"
                got += more
    finally:
        slow.close()
    assert bytes(got).partition(b"\r\n\r\n")[2] == content


def drip(connection: Connection, data: bytes) -> bytes:
    """Sends single bytes until the server answers; returns all that it sends."""
    for byte in data:
        connection.send(bytes([byte]))
        if select.select([connection.socket], [], [], 0.05)[0]:
            return connection.read_to_end()
    raise AssertionError("the server has waited for all bytes")


def test_a_head_that_arrives_byte_by_byte_gets_408(server: ServerFactory) -> None:
    running = server("--header-timeout", "300ms")
    with connect(running.address) as connection:
        said = drip(connection, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 1000)
    answer, rest = parse_answer(said) or (None, b"")
    assert answer
    assert answer.status == 408
    assert answer.closes
    assert rest == b""


def test_an_unfinished_head_request_gets_408_without_a_body(server: ServerFactory) -> None:
    running = server("--header-timeout", "300ms")
    with connect(running.address) as connection:
        connection.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n")
        said = connection.read_to_end()
    head, end, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert end
    assert body == b""


def timeouts(kind: str) -> Callable[[Numbers], bool]:
    return lambda now: bool(now["counters"][f"timeouts_{kind}"] == 1)


def test_a_client_that_sends_nothing_is_closed(server: ServerFactory) -> None:
    running = server("--header-timeout", "300ms", "--idle-timeout", "300ms")
    with connect(running.address) as connection:
        assert connection.read_to_end() == b""
    wait_for(running, timeouts("idle"))


def test_an_idle_connection_is_closed(server: ServerFactory) -> None:
    running = server("--idle-timeout", "300ms", "--header-timeout", "10m")
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        assert connection.read_to_end() == b""
    wait_for(running, timeouts("idle"))


def test_a_body_that_does_not_arrive_ends_the_connection(server: ServerFactory) -> None:
    running = server("--body-timeout", "300ms", "--idle-timeout", "10m")
    with connect(running.address) as connection:
        connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        assert connection.read().status == 405
        assert connection.read_to_end() == b""
    wait_for(running, timeouts("body"))


def test_a_body_of_tiny_chunks_without_a_pause_gets_408(server: ServerFactory) -> None:
    running = server("--body-timeout", "300ms", "--idle-timeout", "10m")
    with connect(running.address) as connection:
        connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        deadline = time.monotonic() + LIMIT_S
        while not select.select([connection.socket], [], [], 0.0005)[0]:
            assert time.monotonic() < deadline, "the server goes on reading"
            connection.send(b"1\r\nx\r\n")
        answer = connection.read()
    assert answer.status == 408
    assert answer.closes
    wait_for(running, timeouts("body"))


def test_a_client_that_never_reads_is_closed(server: ServerFactory, site: Path) -> None:
    with (site / "big.bin").open("wb") as big:
        big.truncate(100_000_000)
    running = server("--send-timeout", "500ms")
    before = len(sockets_of(running))
    stuck = tiny_connection(running)
    try:
        stuck.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        assert stuck.socket.recv(100).startswith(b"HTTP/1.1 200")
        with connect(running.address) as other:
            assert other.get("/hello.txt").status == 200
            wait_for(running, timeouts("send"))
            wait_until(lambda: len(sockets_of(running)) == before + 1, "its socket is closed")
            assert other.get("/hello.txt").status == 200
    finally:
        stuck.close()


def test_the_kernel_takes_little_of_an_answer_for_a_client_that_never_reads(
    server: ServerFactory, site: Path
) -> None:
    with (site / "big.bin").open("wb") as big:
        big.truncate(100_000_000)
    running = server("--send-timeout", "500ms")
    stuck = tiny_connection(running)
    try:
        stuck.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        numbers = wait_for(running, timeouts("send"))
        assert numbers["counters"]["sent_bytes"] < 512 * 1024
    finally:
        stuck.close()


def wait_for_reset(connection: Connection) -> None:
    """Waits until the server's reset has arrived. Does not read, so the window stays closed."""
    poll = select.poll()
    poll.register(connection.socket, 0)

    def is_reset() -> bool:
        return any(events & select.POLLERR for _, events in poll.poll(0))

    wait_until(is_reset, "the connection is reset")


def test_a_client_that_never_reads_is_reset(server: ServerFactory, site: Path) -> None:
    with (site / "big.bin").open("wb") as big:
        big.truncate(100_000_000)
    running = server("--send-timeout", "500ms")
    stuck = tiny_connection(running)
    try:
        stuck.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(running, timeouts("send"))
        wait_for_reset(stuck)
    finally:
        stuck.close()


def kernel_holds(running: Server, client: Connection) -> bool:
    """Whether the kernel still has the server's end of this connection."""
    port = client.socket.getsockname()[1]
    return any(each.peer_port == port for each in tcp_sockets(running.address[1]))


def test_the_kernel_does_not_keep_an_answer_for_a_client_that_never_reads(
    server: ServerFactory, site: Path
) -> None:
    """The server has handed the whole answer to the kernel, so no send of its own times out."""
    (site / "some.bin").write_bytes(bytes(20_000))
    running = server("--send-timeout", "500ms", "--idle-timeout", "300ms")
    stuck = tiny_connection(running)
    try:
        stuck.send(b"GET /some.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(running, timeouts("idle"))
        wait_until(lambda: not kernel_holds(running, stuck), "the kernel has dropped the answer")
    finally:
        stuck.close()


def still_held(connection: Connection) -> bool:
    """Whether the server's socket is open after its end of input: a closed one resets."""
    try:
        connection.send(b"x")
        connection.send(b"x")
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def test_the_end_of_a_slow_answer_arrives_before_the_server_closes(
    server: ServerFactory, site: Path
) -> None:
    """A request that cannot be read is the last one: the server half-closes behind its answer."""
    with (site / "big.bin").open("wb") as big:
        big.truncate(30_000_000)  # more than the kernel takes at once
    running = server()
    held = []
    for _ in range(5):  # each has two seconds before the server stops to wait for the client
        with connect(running.address) as slow:
            slow.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\nbad\r\n\r\n")
            got = slow.read_to_end()
            held.append(still_held(slow))
            assert b"HTTP/1.1 400 " in got[30_000_000:]
    assert any(held)


def test_many_silent_clients_do_not_stop_others(server: ServerFactory) -> None:
    running = server("--header-timeout", "10m")
    silent = [Connection.to(running.address) for _ in range(300)]
    try:
        for connection in silent[::2]:
            connection.send(b"GET / HTTP/1.1\r\nHost: ")
        with connect(running.address) as other:
            for _ in range(200):
                assert other.get("/hello.txt").body == b"hello\n"
    finally:
        for connection in silent:
            connection.close()


def test_resets_leave_no_socket_behind(server: ServerFactory, site: Path) -> None:
    (site / "big.bin").write_bytes(bytes(5_000_000))
    running = server()
    with connect(running.address) as other:
        other.get("/hello.txt")
        before = len(sockets_of(running))
        for number in range(60):
            connection = Connection.to(running.address)
            if number % 3:
                connection.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
            if number % 3 == 2:
                connection.socket.recv(1000)
            connection.reset()

        def closed() -> bool:
            assert other.get("/hello.txt").status == 200
            return len(sockets_of(running)) <= before

        wait_until(closed, lambda: f"{before} sockets, now {len(sockets_of(running))}")
