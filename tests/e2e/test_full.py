# SPDX-License-Identifier: MIT
"""A server has as many connections as it may. The connection that has been idle longest makes space
for a new one, and no connection with a request under way is closed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Process, Server
from tests.e2e.sockets import tcp_sockets
from tests.e2e.statistics import Numbers, wait_for
from tests.e2e.test_auth import ALICE, field
from tests.e2e.wire import Connection, connect
from tests.waiting import wait_until

HEAD = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n"
FULL = 20


@contextlib.contextmanager
def idle_clients(running: Server, count: int) -> Iterator[list[Connection]]:
    """Clients that have received an answer and send nothing more, the longest idle first."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(running.address)) for _ in range(count)]
        for client in clients:
            assert client.get("/hello.txt").status == 200
        yield clients


def is_closed(client: Connection) -> bool:
    return bool(select.select([client.socket], [], [], 0)[0])


def test_idle_connections_do_not_lock_other_clients_out(server: ServerFactory) -> None:
    running = server("--connections", str(FULL), "--workers", "1")
    with idle_clients(running, FULL) as idle:
        for _ in range(3):
            with connect(running.address) as other:
                assert other.get("/hello.txt").body == b"hello\n"
        assert any(map(is_closed, idle))
    numbers = wait_for(running, lambda now: now["counters"]["connections_displaced"] > 0)
    assert "idle-displaced" in {verdict["rule"] for verdict in numbers["verdicts"]}


def test_clients_that_connect_and_send_nothing_do_not_lock_others_out(
    server: ServerFactory,
) -> None:
    running = server("--connections", str(FULL), "--workers", "1", "--header-timeout", "10m")
    with contextlib.ExitStack() as stack:
        for _ in range(FULL):
            stack.enter_context(connect(running.address))
        wait_for(running, lambda now: now["gauges"]["connections_open"] == FULL)
        with connect(running.address) as other:
            assert other.get("/hello.txt").body == b"hello\n"


def is_stopped(process: Process) -> bool:
    status = Path(f"/proc/{process.pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"


def established(running: Server) -> int:
    """The connections that the kernel has for the server, accepted or not."""
    return sum(each.is_established for each in tcp_sockets(running.address[1]))


@pytest.mark.parametrize("model", ["epoll"])
def test_an_event_of_a_connection_that_made_space_is_ignored(server: ServerFactory) -> None:
    """The worker learns in one turn of its loop of a new client, and of the resets of the idle
    connections. It first closes an idle one to make space."""
    running = server("--connections", "4", "--workers", "1")
    (worker,) = running.workers()
    with (
        idle_clients(running, 4) as idle,
        connect(running.address) as fifth,
        connect(running.address) as other,
    ):
        assert fifth.get("/hello.txt").status == 200  # the idle ones are now idle long enough
        os.kill(worker.pid, signal.SIGSTOP)
        wait_until(lambda: is_stopped(worker), "the worker stops")
        other.send(b"GET /hello.txt HTTP/1.0\r\n\r\n")
        for each in (*idle, fifth):
            each.reset()
        wait_until(lambda: established(running) == 1, "the kernel knows of all of it")
        os.kill(worker.pid, signal.SIGCONT)
        assert other.read().body == b"hello\n"
    wait_for(running, lambda now: now["gauges"]["connections_open"] == 0)
    with connect(running.address) as last:
        assert last.get("/hello.txt").body == b"hello\n"
    assert running.workers() == [worker]


@pytest.mark.parametrize("model", ["epoll"])
def test_a_reset_of_the_connection_that_made_space_does_not_end_the_new_one(
    server: ServerFactory, tmp_path: Path
) -> None:
    """The new connection gets the same descriptor. Its answer is pending, because a password is
    compared, when the loop acts on the resets of the old ones."""
    users = tmp_path / "users"
    users.write_text(ALICE)
    running = server("--connections", "4", "--workers", "1", "--auth", str(users))
    (worker,) = running.workers()
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(running.address)) for _ in range(4)]
        for client in idle:
            client.send(HEAD + b"\r\n")
        for client in idle:
            assert client.read().status == 401
        fifth = stack.enter_context(connect(running.address))
        assert fifth.get("/hello.txt").status == 401  # the idle ones are now idle long enough
        os.kill(worker.pid, signal.SIGSTOP)
        wait_until(lambda: is_stopped(worker), "the worker stops")
        other = stack.enter_context(connect(running.address))
        other.send(HEAD + f"{field('alice')}\r\n\r\n".encode())
        for each in (*idle, fifth):
            each.reset()
        wait_until(lambda: established(running) == 1, "the kernel knows of all of it")
        os.kill(worker.pid, signal.SIGCONT)
        assert other.read().body == b"hello\n"


@pytest.mark.parametrize("model", ["uring"])
def test_a_request_that_arrives_before_its_connection_closes_keeps_it_open(
    server: ServerFactory,
) -> None:
    """In one turn of its loop the worker learns of a new client, and of the first request of the
    connection that it has just asked to make space."""
    limits = ("--connections", "2", "--workers", "1", "--threads", "1")
    running = server(*limits, "--header-timeout", "10m", "--idle-timeout", "2s")
    (worker,) = running.workers()
    with connect(running.address) as silent, connect(running.address) as second:
        wait_for(running, partial(has_connections, 2))
        assert second.get("/hello.txt").status == 200
        assert second.read_to_end() == b""  # the time is over, so `silent` is idle long enough
        third = Connection.to(running.address)
        assert third.get("/hello.txt").status == 200
        os.kill(worker.pid, signal.SIGSTOP)
        wait_until(lambda: is_stopped(worker), "the worker stops")
        with connect(running.address) as fourth:
            fourth.send(HEAD + b"\r\n")
            silent.send(HEAD + b"\r\n")
            os.kill(worker.pid, signal.SIGCONT)
            assert silent.read().body == b"hello\n"
            silent.send(HEAD)  # it is not idle, so `third` makes space, or its time is over
            assert fourth.read().body == b"hello\n"
        third.close()
    counters = wait_for(running, partial(has_connections, 0))["counters"]
    assert counters["connections_displaced"] + counters["timeouts_idle"] == 2


def has_connections(count: int, now: Numbers) -> bool:
    return bool(now["gauges"]["connections_open"] == count)


def has_become_idle(times: int, now: Numbers) -> bool:
    return bool(now["counters"]["activities_ended"] == times)


@pytest.mark.parametrize("model", ["fork", "thread", "pool", "epoll"])
def test_the_connection_that_has_been_idle_longest_makes_space(server: ServerFactory) -> None:
    """A client has its answer before the server reads the clock. So the next client waits until the
    server has counted that the connection is idle again."""
    running = server("--connections", "5", "--workers", "1")
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(running.address)) for _ in range(5)]
        for times, client in enumerate((*idle, idle[0]), 1):  # the second is idle longest
            assert client.get("/hello.txt").status == 200
            wait_for(running, partial(has_become_idle, times))
        with connect(running.address) as other:
            assert other.get("/hello.txt").body == b"hello\n"
            wait_until(
                lambda: is_closed(idle[1]),
                lambda: [*map(is_closed, idle)],
            )
            assert not any(is_closed(each) for each in idle if each is not idle[1])


def test_a_connection_with_a_request_under_way_stays(server: ServerFactory) -> None:
    """With two loops, the idle connection may be in another loop than the new one."""
    running = server("--connections", "2", "--workers", "1", "--header-timeout", "10m")
    with idle_clients(running, 2) as (busy, idle):
        busy.send(HEAD)
        wait_for(running, lambda now: now["gauges"]["connections_active"] == 1)
        for _ in range(3):
            with connect(running.address) as other:
                assert other.get("/hello.txt").body == b"hello\n"
        assert is_closed(idle)
        busy.send(b"\r\n")
        assert busy.read().body == b"hello\n"


def test_a_client_waits_while_every_connection_is_busy(server: ServerFactory) -> None:
    running = server("--connections", "2", "--workers", "1", "--header-timeout", "10m")
    with idle_clients(running, 2) as busy, connect(running.address) as other:
        for client in busy:
            client.send(HEAD)
        wait_for(running, lambda now: now["gauges"]["connections_active"] == 2)
        other.send(HEAD + b"\r\n")
        busy[0].send(b"\r\n")
        assert busy[0].read().body == b"hello\n"
        assert other.read().body == b"hello\n"  # busy[0] has become idle, and made space
        busy[1].send(b"\r\n")
        assert busy[1].read().body == b"hello\n"
