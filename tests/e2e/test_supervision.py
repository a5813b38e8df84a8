# SPDX-License-Identifier: MIT
"""A worker that dies is replaced, costs only its own connections, and no listener."""

from __future__ import annotations

import os
import signal
import time

from tests.e2e.conftest import ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import Server
from tests.e2e.wire import Connection, WireError, connect

REPLACED_S = 2.0


def kill_worker(running: Server) -> None:
    """Kills a worker, and waits until another has taken its place."""
    victim = running.workers()[0]
    os.kill(victim.pid, signal.SIGKILL)
    deadline = time.monotonic() + REPLACED_S
    while not (now := running.workers()) or victim in now:
        assert time.monotonic() < deadline, f"not replaced: {running.messages()}"


def answered(running: Server) -> bool:
    try:
        with connect(running.address, REPLACED_S) as connection:
            return connection.get("/hello.txt").body == b"hello\n"
    except (WireError, ConnectionResetError):
        return False


def test_a_killed_worker_is_replaced(server: ServerFactory) -> None:
    running = server()
    assert answered(running)
    kill_worker(running)
    deadline = time.monotonic() + REPLACED_S
    while not answered(running):
        assert time.monotonic() < deadline
    assert "killed by signal 9" in running.messages()


def test_no_connection_is_refused_while_workers_die(server: ServerFactory) -> None:
    running = server()
    with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=False) as load:
        for _ in range(4):
            load.wait_for(50)
            kill_worker(running)
        load.wait_for(50)
        count = load.stop()
    assert count.refused == 0
    assert count.wrong == []


def test_other_workers_go_on(server: ServerFactory) -> None:
    running = server("--workers", "2")
    assert len(running.workers()) == 2
    connections = [Connection.to(running.address) for _ in range(30)]
    try:
        for connection in connections:
            assert connection.get("/hello.txt").status == 200
        kill_worker(running)
        lived = 0
        for connection in connections:
            try:
                lived += connection.get("/hello.txt").status == 200
            except (WireError, OSError):
                continue
        assert 0 < lived < len(connections)
    finally:
        for connection in connections:
            connection.close()


def test_workers_do_not_outlive_their_master(server: ServerFactory) -> None:
    running = server()
    workers = running.workers()
    os.kill(running.popen.pid, signal.SIGKILL)
    assert running.popen.wait() == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while any(worker.alive for worker in workers):
        assert time.monotonic() < deadline, "a worker goes on without its master"
    running.popen.returncode = 0  # as it should be for the fixture, which did not do this
