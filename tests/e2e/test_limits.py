# SPDX-License-Identifier: MIT
"""Limits of each client address, and of each connection, on every model."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.statistics import read, settled, wait_for
from tests.e2e.wire import Connection, connect
from tests.waiting import LIMIT_S, wait_until

EVERYWHERE = "0.0.0.0:0"


def from_address(running: Server, address: str) -> Connection:
    """A connection of the client 127.x.y.z."""
    made = socket.create_connection(
        ("127.0.0.1", running.address[1]), timeout=LIMIT_S, source_address=(address, 0)
    )
    return Connection(made)


def is_refused(connection: Connection) -> bool:
    """Whether the server resets the connection. One that is served answers a request."""
    try:
        return connection.get("/hello.txt").status != 200
    except (ConnectionResetError, BrokenPipeError):
        return True
    finally:
        connection.close()


def counter(running: Server, name: str) -> Callable[[int], bool]:
    return lambda count: read(running.master.pid)["counters"][name] == count


def test_an_address_has_at_most_so_many_connections(server: ServerFactory) -> None:
    running = server("--address-connections", "3", "--workers", "1", listen=(EVERYWHERE,))
    held = [from_address(running, "127.0.0.1") for _ in range(3)]
    assert [each.get("/hello.txt").status for each in held] == [200] * 3
    assert is_refused(from_address(running, "127.0.0.1"))
    assert not is_refused(from_address(running, "127.0.0.2"))
    held.pop().close()
    wait_until(lambda: not is_refused(from_address(running, "127.0.0.1")), "one may come again")
    for each in held:
        assert each.get("/hello.txt").status == 200
        each.close()
    numbers = settled(running)
    assert numbers["counters"]["connections_limited"] >= 1
    assert running.messages().count("error") == 0


@pytest.mark.parametrize("model", ["pool", "prefork"])
def test_a_sticky_pool_counts_each_connection_once(server: ServerFactory) -> None:
    options = ("--address-connections", "1", "--workers", "1", "--pool-policy", "sticky")
    running = server(*options, listen=(EVERYWHERE,))
    for _ in range(3):
        wait_until(lambda: not is_refused(from_address(running, "127.0.0.1")), "one may come")
    held: list[Connection] = []

    def stays() -> bool:  # once the server has seen the end of the connection before it
        held.append(from_address(running, "127.0.0.1"))
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            return held[-1].get("/hello.txt").status == 200
        held.pop().close()
        return False

    wait_until(stays, "one may stay")
    assert is_refused(from_address(running, "127.0.0.1"))
    held[0].close()


def test_all_workers_share_the_limit(server: ServerFactory) -> None:
    running = server("--address-connections", "4", "--workers", "2", listen=(EVERYWHERE,))
    held: list[Connection] = []
    while len(held) < 4:
        connection = from_address(running, "127.0.0.1")
        assert connection.get("/hello.txt").status == 200
        held.append(connection)
    for _ in range(8):  # whichever worker accepts them
        assert is_refused(from_address(running, "127.0.0.1"))
    for each in held:
        each.close()


def test_a_killed_worker_leaves_no_count_behind(server: ServerFactory) -> None:
    running = server("--address-connections", "2", "--workers", "1", listen=(EVERYWHERE,))
    held = [from_address(running, "127.0.0.1") for _ in range(2)]
    assert [each.get("/hello.txt").status for each in held] == [200] * 2
    serving = {each.pid for each in running.workers()}
    orphans = [child for worker in running.workers() for child in worker.children()]  # of `fork`
    for process in running.master.descendants():
        if process.pid in serving:
            os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not is_refused(from_address(running, "127.0.0.1")), "it is admitted again")
    for each in held:
        each.close()
    wait_until(lambda: not any(each.alive for each in orphans), "their processes have ended")
    wait_until(lambda: not is_refused(from_address(running, "127.0.0.1")), "it is still admitted")


@pytest.mark.parametrize("model", ["fork"])
def test_a_killed_child_leaves_no_count_behind(server: ServerFactory) -> None:
    running = server("--address-connections", "1", listen=(EVERYWHERE,))
    held = from_address(running, "127.0.0.1")
    assert held.get("/hello.txt").status == 200
    [child] = running.workers()[0].children()
    os.kill(child.pid, signal.SIGKILL)
    wait_until(lambda: not is_refused(from_address(running, "127.0.0.1")), "it is admitted again")
    held.close()


@pytest.mark.parametrize("model", ["fork"])
def test_a_child_killed_after_its_connection_releases_the_address_once(
    server: ServerFactory, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    os.mkfifo(log)
    reading = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(log, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:  # the child waits a moment for space, when it has closed the connection
            os.write(writing, b"x" * select.PIPE_BUF)
    limit = ("--address-connections", "1", "--access-log", "-")
    running = server(*limit, listen=(EVERYWHERE,), stdout=log)
    [worker] = running.workers()
    for _ in range(3):
        connection = from_address(running, "127.0.0.1")
        connection.send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert connection.read().status == 200
        assert connection.read_to_end() == b""
        for child in worker.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
        connection.close()
        wait_until(lambda: not "".join(worker.of_threads("children")), "the child is reaped")
    assert not is_refused(from_address(running, "127.0.0.1"))
    os.close(writing)
    os.close(reading)


def test_an_address_that_connects_too_fast_is_reset(server: ServerFactory) -> None:
    running = server("--address-connection-rate", "1", "--workers", "1", listen=(EVERYWHERE,))
    outcomes = [is_refused(from_address(running, "127.0.0.1")) for _ in range(60)]
    assert outcomes[:10] == [False] * 10
    assert any(outcomes)
    assert not is_refused(from_address(running, "127.0.0.3"))
    wait_until(lambda: not is_refused(from_address(running, "127.0.0.1")), "it may connect again")


def test_an_address_that_sends_too_many_requests_gets_429(
    server: ServerFactory, tmp_path: Path
) -> None:
    (tmp_path / "errors").mkdir()
    (tmp_path / "errors/429.html").write_text("too many\n")
    pages = ("--error-pages", str(tmp_path / "errors"))
    rate = ("--address-request-rate", "1", "--workers", "1")
    running = server(*rate, *pages, listen=(EVERYWHERE,))
    connection = from_address(running, "127.0.0.1")
    answers = [connection.get("/hello.txt") for _ in range(200)]
    statuses = [answer.status for answer in answers]
    assert statuses[:10] == [200] * 10
    limited = [answer for answer in answers if answer.status == 429]
    assert limited
    assert {answer.get("Retry-After") for answer in limited} == {"1"}
    assert {answer.body for answer in limited} == {b"too many\n"}
    other = from_address(running, "127.0.0.2")
    assert other.get("/hello.txt").status == 200
    wait_until(lambda: connection.get("/hello.txt").status == 200, "it may send again")
    wait_for(running, lambda now: now["counters"]["requests_limited"] >= len(limited))
    connection.close()
    other.close()


def test_exempt_networks_have_no_limit(server: ServerFactory) -> None:
    running = server(
        *("--address-connections", "1", "--address-request-rate", "1"),
        *("--address-exempt", "127.0.0.0/30, ::1", "--workers", "1"),
        listen=(EVERYWHERE,),
    )
    held = [from_address(running, "127.0.0.1") for _ in range(5)]
    for each in held:
        assert [each.get("/hello.txt").status for _ in range(20)] == [200] * 20
        each.close()
    held = [from_address(running, "127.0.0.4")]
    assert held[0].get("/hello.txt").status == 200
    assert is_refused(from_address(running, "127.0.0.4"))
    held[0].close()


def test_a_connection_ends_after_its_last_request(server: ServerFactory) -> None:
    running = server("--connection-requests", "5")
    with connect(running.address) as connection:
        answers = [connection.get("/hello.txt") for _ in range(5)]
        assert [answer.closes for answer in answers] == [False] * 4 + [True]
        assert connection.read_to_end() == b""
    assert settled(running)["counters"]["connections_retired"] == 1


def test_a_connection_ends_after_its_time(server: ServerFactory) -> None:
    running = server("--connection-time", "1s")
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        assert connection.read_to_end() == b""  # well before idle-timeout
    assert settled(running)["counters"]["connections_retired"] == 1
