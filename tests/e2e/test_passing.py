# SPDX-License-Identifier: MIT
"""The master passes connections to the workers evenly, and loses none.

The kernel shows which process holds which socket. A connection between master and worker is held by
no process. A connection in the backlog has no inode yet.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Process, Server
from tests.e2e.sockets import tcp_sockets
from tests.e2e.test_stopping import wait_until_stopping
from tests.e2e.wire import Connection, connect
from tests.waiting import wait_until

pytestmark = pytest.mark.parametrize("model", ["prefork"])

REQUEST = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"


def accepted(running: Server) -> set[str]:
    """The server's ends of established connections that have been accepted."""
    mine = tcp_sockets(running.address[1])
    return {each.link for each in mine if each.is_established and each.inode != 0}


def wait_until_passed(running: Server, count: int) -> None:
    """Waits until the master has passed this many connections to workers."""
    wait_until(
        lambda: len(accepted(running) - running.master.sockets()) >= count,
        lambda: f"{count} connections are passed, {len(accepted(running))} are accepted",
    )


@contextmanager
def clients(running: Server, count: int) -> Iterator[list[Connection]]:
    """Clients that have each sent a request."""
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


def none_hold(workers: list[Process], sockets: set[str]) -> bool:
    return not any(worker.sockets() & sockets for worker in workers)


def test_the_master_passes_connections_evenly(server: ServerFactory) -> None:
    running = server()
    workers = running.workers()
    assert len(workers) == 4
    for _ in range(2):  # closed connections no longer count
        with clients(running, 30) as connections:
            assert_all_answered(connections)
            mine = accepted(running)
            shares = [len(worker.sockets() & mine) for worker in workers]
            assert sum(shares) == 30
            assert set(shares) <= {7, 8}
        wait_until(partial(none_hold, workers, mine), "the workers have closed the connections")


def test_the_master_keeps_no_descriptor_of_a_connection(server: ServerFactory) -> None:
    running = server()
    folder = f"/proc/{running.popen.pid}/fd"
    before = sorted(os.listdir(folder))
    for _ in range(300):
        with connect(running.address) as connection:
            connection.send(REQUEST)
            assert connection.read().status == 200
    # The client can have its last answer before the master closes its descriptor.
    wait_until(
        lambda: sorted(os.listdir(folder)) == before, "the master has closed its descriptors"
    )


def test_a_worker_that_hangs_does_not_stop_the_others(server: ServerFactory) -> None:
    running = server("--workers", "2")
    with stopped(running.workers()[:1]), clients(running, 20) as connections:
        answered = 0
        for connection in connections:
            connection.socket.setblocking(False)

        def half_of_them_answered() -> bool:
            nonlocal answered
            for connection in connections:
                with contextlib.suppress(BlockingIOError):
                    answered += bool(connection.socket.recv(4096))
            return answered >= 10

        wait_until(half_of_them_answered, lambda: f"10 of 20 answers, now {answered}")


def test_connections_passed_to_a_killed_worker_are_answered_by_another(
    server: ServerFactory,
) -> None:
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


def test_connections_passed_to_a_worker_killed_during_a_stop_are_answered(
    server: ServerFactory,
) -> None:
    running = server("--workers", "1")
    (worker,) = running.workers()
    with stopped([worker]), clients(running, 20) as connections:
        wait_until_passed(running, 10)
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        os.kill(worker.pid, signal.SIGKILL)
        assert_all_answered(connections)
    assert running.wait() == 0


def test_a_signal_to_every_process_loses_no_request(server: ServerFactory) -> None:
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


def test_a_worker_that_receives_sigterm_is_replaced(server: ServerFactory) -> None:
    running = server("--workers", "2")
    workers = running.workers()
    os.kill(workers[0].pid, signal.SIGTERM)

    def replaced() -> bool:
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200
        return not workers[0].alive and len(running.workers()) == 2

    wait_until(replaced, "the worker is replaced")
