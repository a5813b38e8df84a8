# SPDX-License-Identifier: MIT
"""Thousands of connections at the same time, and more connections than a server accepts."""

from __future__ import annotations

import contextlib
import select
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.holders import Crowd, descriptors
from tests.e2e.running import Server
from tests.e2e.wire import Connection
from tests.waiting import wait_until

REQUEST = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"
SPARE = 500  # descriptors and tasks for everything else

BOUND = 50
BEYOND = 200


def open_sockets(running: Server) -> list[str]:
    """Of all workers. A worker that still starts has its sockets already."""
    return sorted(link for worker in running.workers() for link in worker.sockets())


def tasks_allowed() -> int:
    """How many more processes and threads this machine allows."""
    limits = [int(Path("/proc/sys/kernel/threads-max").read_text())]
    limits.append(int(Path("/proc/sys/kernel/pid_max").read_text()))
    group = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip()
    for folder in [Path("/sys/fs/cgroup"), Path(f"/sys/fs/cgroup{group}")]:
        file = folder / "pids.max"
        if file.is_file() and (text := file.read_text().strip()) != "max":
            limits.append(int(text))
    used = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    return min(limits) - used


def test_a_thousand_connections_are_held_and_none_is_reset(server: ServerFactory) -> None:
    hold(server, 1000)


# The other models need a process or a thread for each connection, or more processes.
@pytest.mark.parametrize("model", ["pool", "percore", "uring"])
def test_9000_connections_are_held_and_none_is_reset(server: ServerFactory) -> None:
    hold(server, 9000)


def hold(server: ServerFactory, count: int) -> None:
    """Opens this many connections, and sends two requests over each."""
    if tasks_allowed() < count + SPARE:
        pytest.skip(f"a process or thread for each of {count} is more than this machine allows")
    with descriptors(count + SPARE) as allowed:
        if not allowed:
            pytest.skip(f"{count} descriptors are more than a process may have here")
        running = server("--connections", str(count), "--idle-timeout", "100s")
        with Crowd(running.address, REQUEST) as crowd:
            crowd.grow(1)
            base = open_sockets(running)
            crowd.grow(count - 1)
            crowd.ask(crowd.clients)
            assert len(crowd.clients) == count
            assert all(
                [answer.body for answer in client.answers] == [b"hello\n", b"hello\n"]
                for client in crowd.clients
            )
        wait_until(
            lambda: len(open_sockets(running)) <= len(base),
            lambda: f"as few sockets as before: {base}, now {open_sockets(running)}",
        )


def test_connections_beyond_the_bound_wait_and_are_served(server: ServerFactory) -> None:
    running = server("--connections", str(BOUND))
    with Crowd(running.address, REQUEST) as crowd:
        answers = crowd.pass_through(BEYOND)
        assert [answer.body for answer in answers] == BEYOND * [b"hello\n"]


def test_a_connection_beyond_the_bound_is_served_when_another_one_closes(
    server: ServerFactory,
) -> None:
    running = server("--connections", str(BOUND), "--header-timeout", "0")
    # With the begin of a second request, a connection is never idle, and makes no space.
    with Crowd(running.address, REQUEST + REQUEST[:10]) as holders:
        holders.grow(BOUND * len(running.workers()))  # the bound is that of each worker
        with contextlib.closing(Connection.to(running.address)) as late:
            late.send(REQUEST)
            assert not select.select([late.socket], [], [], 0.1)[0]
            holders.leave(holders.clients[0])
            assert late.read().body == b"hello\n"
