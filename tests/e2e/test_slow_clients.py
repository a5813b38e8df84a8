# SPDX-License-Identifier: MIT
"""Clients that are slow, or silent, get what is theirs and cost nobody else anything."""

from __future__ import annotations

import os
import select
import socket
import time
from pathlib import Path

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.wire import Connection, connect, parse_answer

POLL_S = 0.02
# What a deadline may be late by.
LATE_S = 1.5


def tiny_connection(address: tuple[str, int]) -> Connection:
    """One with the smallest receive buffer that the kernel gives."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    made.settimeout(20)
    made.connect(address)
    return Connection(made)


def sockets_of(server: Server) -> set[str]:
    """The sockets of its workers, and of theirs; a connection is one more."""
    return set().union(*(process.sockets() for process in server.master.descendants()))


def test_a_slow_reader_gets_ten_megabytes(server: ServerFactory, site: Path) -> None:
    content = os.urandom(10_000_000)
    (site / "big.bin").write_bytes(content)
    running = server()
    slow = tiny_connection(running.address)
    got = bytearray()
    longest_s = 0.0
    try:
        slow.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        with connect(running.address) as other:
            while more := slow.socket.recv(16384):
                if len(got) % 97 == 0:
                    asked = time.monotonic()
                    assert other.get("/hello.txt").body == b"hello\n"
                    longest_s = max(longest_s, time.monotonic() - asked)
                got += more
    finally:
        slow.close()
    assert bytes(got).partition(b"\r\n\r\n")[2] == content
    assert longest_s < 1


def drip(connection: Connection, data: bytes, seconds: float) -> bytes:
    """Sends a byte now and then until the peer says something; what it says."""
    until = time.monotonic() + seconds
    for byte in data:
        connection.send(bytes([byte]))
        if select.select([connection.socket], [], [], 0.1)[0]:
            return connection.read_to_end()
        assert time.monotonic() < until, "it takes all the time in the world"
    raise AssertionError("it waited for all of it")


def test_a_head_that_drips_in_is_cut_off_with_408(server: ServerFactory) -> None:
    running = server("--header-timeout", "1s")
    with connect(running.address) as connection:
        began = time.monotonic()
        said = drip(connection, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 1000, 1 + LATE_S)
        took = time.monotonic() - began
    answer, rest = parse_answer(said) or (None, b"")
    assert answer
    assert answer.status == 408
    assert answer.closes
    assert rest == b""
    assert 0.9 <= took <= 1 + LATE_S


def test_a_head_request_that_is_not_finished_is_answered_without_a_body(
    server: ServerFactory,
) -> None:
    running = server("--header-timeout", "1s")
    with connect(running.address) as connection:
        connection.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n")
        said = connection.read_to_end()
    head, end, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert end
    assert body == b""


def test_a_client_that_says_nothing_is_closed(server: ServerFactory) -> None:
    running = server("--header-timeout", "1s", "--idle-timeout", "1s")
    with connect(running.address) as connection:
        began = time.monotonic()
        assert connection.read_to_end() == b""
        assert 0.9 <= time.monotonic() - began <= 1 + LATE_S


def test_an_idle_connection_is_closed(server: ServerFactory) -> None:
    running = server("--idle-timeout", "1s", "--header-timeout", "10s")
    with connect(running.address) as connection:
        for _ in range(2):
            assert connection.get("/hello.txt").status == 200
        began = time.monotonic()
        assert connection.read_to_end() == b""
        assert 0.9 <= time.monotonic() - began <= 1 + LATE_S


def test_a_body_that_does_not_come_is_not_waited_for(server: ServerFactory) -> None:
    running = server("--body-timeout", "1s", "--idle-timeout", "20s")
    with connect(running.address) as connection:
        connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        assert connection.read().status == 405
        began = time.monotonic()
        assert connection.read_to_end() == b""
        assert time.monotonic() - began <= 1 + LATE_S


def test_a_client_that_never_reads_is_given_up(server: ServerFactory, site: Path) -> None:
    with (site / "big.bin").open("wb") as big:
        big.truncate(100_000_000)
    running = server("--send-timeout", "2s")
    before = len(sockets_of(running))
    stuck = tiny_connection(running.address)
    try:
        stuck.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        assert stuck.socket.recv(100).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        with connect(running.address) as other:
            assert other.get("/hello.txt").status == 200
            assert len(sockets_of(running)) == before + 2
            while len(sockets_of(running)) > before + 1:
                assert other.get("/hello.txt").status == 200
                assert time.monotonic() - began <= 2 + 2 * LATE_S
                time.sleep(POLL_S)
        assert time.monotonic() - began >= 1.9
    finally:
        stuck.close()


def test_many_silent_clients_cost_the_others_nothing(server: ServerFactory) -> None:
    running = server("--header-timeout", "20s")
    silent = [Connection.to(running.address) for _ in range(300)]
    try:
        for connection in silent[::2]:
            connection.send(b"GET / HTTP/1.1\r\nHost: ")
        with connect(running.address) as other:
            began = time.monotonic()
            for _ in range(200):
                assert other.get("/hello.txt").body == b"hello\n"
            assert time.monotonic() - began < 5
    finally:
        for connection in silent:
            connection.close()


def test_resets_leave_nothing_behind(server: ServerFactory, site: Path) -> None:
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
        began = time.monotonic()
        while len(sockets_of(running)) > before:
            assert other.get("/hello.txt").status == 200
            assert time.monotonic() - began < 5, "connections stay behind"
            time.sleep(POLL_S)
