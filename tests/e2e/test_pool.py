# SPDX-License-Identifier: MIT
"""What the fixed threads behind a bounded queue promise: progress for all, or 503 at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.crowd import Crowd, fairness
from tests.e2e.wire import Answer, Connection, connect

HELLO = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"

pytestmark = pytest.mark.parametrize("model", ["pool"], scope="session")


def test_a_thousand_clients_share_ten_threads(server: ServerFactory) -> None:
    running = server("--threads", "10")
    with Crowd(running.address, 1000) as crowd:
        crowd.ask_until(60_000)
        counts = [member.answers for member in crowd.members]
    assert min(counts) > 0
    assert fairness(counts) >= 0.95


def hears_nothing(connection: Connection, seconds: float) -> bool:
    return not select.select([connection.socket], [], [], seconds)[0]


def test_sticky_idle_clients_starve_the_eleventh(server: ServerFactory) -> None:
    running = server("--threads", "10", "--pool-policy", "sticky")
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(connect(running.address)) for _ in range(10)]
        for holder in holders:
            assert holder.get("/hello.txt").body == b"hello\n"
        eleventh = stack.enter_context(connect(running.address))
        eleventh.send(HELLO)
        assert hears_nothing(eleventh, 1)
        for holder in holders:  # each is still served by the thread it has
            assert holder.get("/hello.txt").body == b"hello\n"
        assert hears_nothing(eleventh, 0)
        holders[3].close()
        assert eleventh.read().body == b"hello\n"


def test_parked_idle_clients_starve_nobody(server: ServerFactory) -> None:
    running = server("--threads", "2")
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            idle = stack.enter_context(connect(running.address))
            assert idle.get("/hello.txt").body == b"hello\n"
        with connect(running.address) as other:
            assert other.get("/hello.txt").body == b"hello\n"


def assert_is_refusal(answer: Answer) -> None:
    assert answer.status == 503
    assert int(answer.get("Retry-After") or 0) > 0
    assert answer.closes


def test_a_full_queue_says_so_and_recovers(server: ServerFactory) -> None:
    running = server("--threads", "1", "--pool-queue", "2", "--pool-policy", "sticky")
    with contextlib.ExitStack() as stack:
        holder, *queued = (stack.enter_context(connect(running.address)) for _ in range(3))
        assert holder.get("/hello.txt").status == 200
        for connection in queued:
            connection.send(HELLO)
        for _ in range(5):
            with connect(running.address) as refused:
                assert_is_refusal(refused.get("/hello.txt"))
                assert refused.read_to_end() == b""
        assert "pool-queue" in running.messages()
        assert all(hears_nothing(connection, 0) for connection in queued)
        holder.close()
        for connection in queued:  # in the order they came, each when the one before has left
            assert connection.read().body == b"hello\n"
            connection.close()
        with connect(running.address) as after:
            assert after.get("/hello.txt").body == b"hello\n"


def test_a_parked_client_that_finds_the_queue_full_is_told(server: ServerFactory) -> None:
    running = server("--threads", "1", "--pool-queue", "1")
    with Crowd(running.address, 300) as crowd:
        assert {answer.status for answer in crowd.ask_in_turn()} == {200}
        refused = 0
        for _ in range(20):
            for answer in crowd.ask_once():
                if answer.status == 200:
                    assert answer.body == b"hello\n"
                else:
                    assert_is_refusal(answer)
                    refused += 1
            crowd.wait_for_closed(refused)
        assert refused > 0
    with connect(running.address) as after:
        assert after.get("/hello.txt").body == b"hello\n"


def test_sticky_threads_let_go_when_it_stops(server: ServerFactory) -> None:
    running = server("--threads", "2", "--pool-policy", "sticky", "--idle-timeout", "60s")
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(connect(running.address)) for _ in range(2)]
        for holder in holders:
            assert holder.get("/hello.txt").status == 200
        queued = [stack.enter_context(connect(running.address)) for _ in range(5)]
        for connection in queued:
            connection.send(HELLO)
        running.signal(signal.SIGTERM)
        for connection in queued:  # whoever was let in is served
            answer = connection.read()
            assert answer.body == b"hello\n"
            assert answer.closes
        for holder in holders:
            assert holder.read_to_end() == b""
    assert running.wait() == 0


@pytest.mark.parametrize("policy", ["park", "sticky"])
def test_a_second_signal_ends_what_is_under_way(
    server: ServerFactory, site: Path, policy: str
) -> None:
    (site / "big.bin").write_bytes(bytes(20_000_000))
    running = server("--threads", "2", "--pool-policy", policy)
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            reader = stack.enter_context(connect(running.address))
            reader.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        running.signal(signal.SIGTERM)
        deadline = time.monotonic() + 10
        while "stopping" not in running.messages():
            assert time.monotonic() < deadline
        running.signal(signal.SIGTERM)
        assert running.wait(5) == 0


def test_slow_readers_keep_no_thread(server: ServerFactory, site: Path) -> None:
    content = os.urandom(8_000_000)
    (site / "big.bin").write_bytes(content)
    running = server("--threads", "10")
    with contextlib.ExitStack() as stack:
        slow = []
        for _ in range(20):
            made = stack.enter_context(socket.socket())
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            made.settimeout(20)
            made.connect(running.address)
            connection = Connection(made)
            connection.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.data = made.recv(1000)
            assert connection.data.startswith(b"HTTP/1.1 200")
            slow.append(connection)
        with connect(running.address) as other:
            for _ in range(100):
                assert other.get("/hello.txt").body == b"hello\n"
        for connection in slow:
            answer = connection.read()
            assert answer.body == content
            assert connection.get("/hello.txt").body == b"hello\n"
