# SPDX-License-Identifier: MIT
"""The master passes connections to workers: evenly, and none is lost on the way.

The kernel tells who holds which socket, so that a connection on its way, which no process holds,
is told from one that waits to be accepted, which has no inode yet.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Process, Server
from tests.e2e.wire import Connection, connect

pytestmark = pytest.mark.parametrize("model", ["prefork"])

WAIT_S = 10.0
REQUEST = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"


def accepted(running: Server) -> set[str]:
    """The server's ends of established connections that have been accepted."""
    port = f":{running.address[1]:04X}"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = [row for row in rows if row[1].endswith(port) and row[3] == "01" and row[9] != "0"]
    return {f"socket:[{row[9]}]" for row in mine}


def wait_until_passed(running: Server, count: int) -> None:
    """Waits until so many connections are on their way or have arrived."""
    deadline = time.monotonic() + WAIT_S
    while len(accepted(running) - running.master.sockets()) < count:
        assert time.monotonic() < deadline, f"{len(accepted(running))} of {count} are accepted"


@contextmanager
def clients(running: Server, count: int) -> Iterator[list[Connection]]:
    """Clients that have sent a request each."""
    connections = [Connection.to(running.address) for _ in range(count)]
    try:
        for connection in connections:
            connection.send(REQUEST)
        yield connections
    finally:
        for connection in connections:
            connection.close()


@contextmanager
def stopped(workers: list[Process]) -> Iterator[None]:
    for worker in workers:
        os.kill(worker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in workers:
            if worker.alive:
                os.kill(worker.pid, signal.SIGCONT)


def assert_all_answered(connections: list[Connection]) -> None:
    for connection in connections:
        assert connection.read().body == b"hello\n"


def test_connections_are_spread_evenly(server: ServerFactory) -> None:
    running = server()
    workers = running.workers()
    assert len(workers) == 4
    for _ in range(2):  # what has ended counts no more
        with clients(running, 30) as connections:
            assert_all_answered(connections)
            mine = accepted(running)
            shares = [len(worker.sockets() & mine) for worker in workers]
            assert sum(shares) == 30
            assert set(shares) <= {7, 8}
        deadline = time.monotonic() + WAIT_S
        while any(worker.sockets() & mine for worker in workers):
            assert time.monotonic() < deadline


def test_the_master_keeps_no_descriptor(server: ServerFactory) -> None:
    running = server()
    folder = f"/proc/{running.popen.pid}/fd"
    before = sorted(os.listdir(folder))
    for _ in range(1000):
        with connect(running.address) as connection:
            connection.send(REQUEST)
            assert connection.read().status == 200
    deadline = time.monotonic() + WAIT_S
    while sorted(os.listdir(folder)) != before:  # the last answer may be faster than the master
        assert time.monotonic() < deadline


def test_a_worker_that_hangs_does_not_stop_the_others(server: ServerFactory) -> None:
    running = server("--workers", "2")
    with stopped(running.workers()[:1]), clients(running, 20) as connections:
        answered = 0
        deadline = time.monotonic() + WAIT_S
        for connection in connections:
            connection.socket.setblocking(False)
        while answered < 10:
            assert time.monotonic() < deadline
            for connection in connections:
                try:
                    answered += bool(connection.socket.recv(4096))
                except BlockingIOError:
                    continue


def test_what_waits_for_a_worker_that_is_killed_is_answered(server: ServerFactory) -> None:
    running = server("--workers", "2")
    workers = running.workers()
    with stopped(workers), clients(running, 20) as connections:
        wait_until_passed(running, 20)
        for worker in workers:
            assert not worker.sockets() & accepted(running)
            os.kill(worker.pid, signal.SIGKILL)
        assert_all_answered(connections)
    assert running.messages().count("killed by signal 9") == 2


def test_more_connections_than_a_channel_holds_are_all_answered(server: ServerFactory) -> None:
    running = server("--workers", "1")
    with stopped(running.workers()):
        crowd = [Connection.to(running.address) for _ in range(700)]
        for connection in crowd:
            connection.send(REQUEST)
        wait_until_passed(running, 100)
    try:
        assert_all_answered(crowd)
    finally:
        for connection in crowd:
            connection.close()


def test_what_waits_for_a_worker_that_is_killed_while_it_stops_is_answered(
    server: ServerFactory,
) -> None:
    running = server("--workers", "1")
    (worker,) = running.workers()
    with stopped([worker]), clients(running, 20) as connections:
        wait_until_passed(running, 10)
        running.signal(signal.SIGTERM)
        deadline = time.monotonic() + WAIT_S
        while "stopping" not in running.messages():
            assert time.monotonic() < deadline
        os.kill(worker.pid, signal.SIGKILL)
        assert_all_answered(connections)
    assert running.wait() == 0


def test_a_stop_that_every_process_is_told_of_loses_nothing(server: ServerFactory) -> None:
    running = server("--workers", "2")
    workers = running.workers()
    with stopped(workers), clients(running, 20) as connections:
        wait_until_passed(running, 20)
        for process in [*workers, running.master]:
            os.kill(process.pid, signal.SIGTERM)
        for worker in workers:
            os.kill(worker.pid, signal.SIGCONT)
        assert_all_answered(connections)
    assert running.wait() == 0


def test_a_worker_that_is_told_to_stop_is_replaced(server: ServerFactory) -> None:
    running = server("--workers", "2")
    workers = running.workers()
    os.kill(workers[0].pid, signal.SIGTERM)
    deadline = time.monotonic() + WAIT_S
    while workers[0].alive or len(running.workers()) < 2:
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200
        assert time.monotonic() < deadline
